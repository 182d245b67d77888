# SPDX-License-Identifier: Apache-2.0
"""retort models: the encoders beside an independent implementation, folders that are broken, and installing."""

import json
import os
import shutil
import struct

import numpy as np
import pytest

import reference
from calling import call

TEXTS = [
    "The cat sat on the mat.", "", "   ", "hello world", "unaffable running tools, embeddings!",
    "Naïve CAFÉ Ünïcödé İstanbul ΣΊΣΥΦΟΣ", "東京の天気 and 猫; Straße øł", "한 \u1112\u1161\u11ab", "a\tb\nc\rd\u00a0e\u2028f",
    "x\x00y\x07z\ufffd\u200b\u00ad", "[MASK] the [SEP]cat[CLS] <mask> <s>", "word" * 25, "word" * 26,
    "the cat " * 100, "e\u0301 \u0301 ¿qué? — 「x」", "$5 + 3 = `8`~^|", "🎈 \U0001f600 ok \ue000", "supercalifragilistic",
]


def embed(folder, texts, *flags, data=None):
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    place = ["--data-dir", data] if data else ["--models.directory", folder.parent, "--model", folder.name]
    ended = call("models", "embed", "--jsonl", *place, *flags, stdin=lines.encode())
    assert ended.status == 0, ended.stderr
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    return np.array([a["embedding"] for a in answers]), {a["model_used"] for a in answers}


def expect_alike(got, wanted, most=2e-5):
    cosines = (got * wanted).sum(1) / np.linalg.norm(got, axis=1) / np.linalg.norm(wanted, axis=1)
    assert cosines.min() > 0.9999, cosines
    assert np.abs(got - wanted).max() < most, np.abs(got - wanted).max(1)


@pytest.mark.parametrize("options", [
    dict(kind="bert"),
    dict(kind="mpnet"),
    dict(kind="mpnet", max_tokens=300, positions=302, tokens_in="vocab.txt", prefix="mpnet.", normalizes=False),
    dict(kind="bert", pooling="cls", act="gelu_new", heads=2, tokens_in="vocab.txt"),
    dict(kind="bert", pooling="max", act="relu", normalizes=False, hidden=48, heads=6, inner=40),
    dict(kind="bert", dtype="F16", prefix="bert."),
    dict(kind="bert", dtype="BF16", lowers=False),
    dict(kind="bert", padding=3, max_tokens=500),
], ids=lambda o: "-".join(map(str, o.values())))
def test_vectors_are_those_of_the_reference(tmp_path, options):
    model, tokenizer = reference.make(tmp_path / "small", **options)
    most = min(model.max_tokens, model.config["max_position_embeddings"] - 2 * (options["kind"] == "mpnet"))
    got, used = embed(tmp_path / "small", TEXTS)
    wanted = model.embed_tokens([tokenizer(text, most) for text in TEXTS])
    assert used == {"small"}
    expect_alike(got, wanted)
    if model.normalizes:
        assert np.abs(np.linalg.norm(got, axis=1) - 1).max() < 1e-6


def test_a_text_has_one_vector_in_any_company(tmp_path):
    reference.make(tmp_path / "small", "mpnet")
    together, _ = embed(tmp_path / "small", TEXTS * 5)
    alone, _ = embed(tmp_path / "small", [TEXTS[4]])
    assert (together.reshape(5, len(TEXTS), -1)[:, 4] == alone[0]).all()


# -- Folders that are not what they should be --------------------------------------------------------

def edit(name, change):
    def act(folder):
        path = folder / name
        doc = json.loads(path.read_text())
        change(doc)
        path.write_text(json.dumps(doc))
    return act


def write(name, data):
    return lambda folder: (folder / name).write_bytes(data)


def remove(name):
    return lambda folder: (folder / name).unlink()


def edit_header(change):
    def act(folder):
        path = folder / "model.safetensors"
        raw = path.read_bytes()
        size = struct.unpack("<Q", raw[:8])[0]
        header = json.loads(raw[8:8 + size])
        change(header)
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + size:])
    return act


def cut_weights(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


def poison(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-400] + struct.pack("<f", float("nan")) * 100)


def shards(folder):
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    (folder / "model.safetensors.index.json").write_text("{}")


def pickle(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


WORDS = "embeddings.word_embeddings.weight"
BROKEN = {
    "no weights": (remove("model.safetensors"), "no model.safetensors"),
    "several parts": (shards, "several parts"),
    "a pickle": (pickle, "pytorch_model.bin"),
    "no config": (remove("config.json"), "no config.json"),
    "no tokenizer": (remove("tokenizer.json"), "neither tokenizer.json nor vocab.txt"),
    "cut weights": (cut_weights, "is it whole?"),
    "cut header": (write("model.safetensors", struct.pack("<Q", 5000) + b"{}"), "ends inside its header"),
    "huge header": (write("model.safetensors", struct.pack("<Q", 2 ** 63) + b"{}"), "header would be"),
    "header of a list": (write("model.safetensors", struct.pack("<Q", 2) + b"[]"), "no object"),
    "no JSON": (write("model.safetensors", struct.pack("<Q", 2) + b"{x"), "header"),
    "empty weights": (write("model.safetensors", b""), "no file of"),
    "short weights": (write("model.safetensors", b"1234"), "too short"),
    "weights that are no numbers": (poison, "no number"),
    "a missing tensor": (edit_header(lambda h: h.pop("encoder.layer.1.output.dense.bias")),
                         "encoder.layer.1.output.dense.bias is missing"),
    "no words": (edit_header(lambda h: h.pop(WORDS)), "is it a sentence encoder?"),
    "offsets outside": (edit_header(lambda h: h[WORDS].update(data_offsets=[0, 2 ** 40])), "not in the file"),
    "offsets backwards": (edit_header(lambda h: h[WORDS].update(data_offsets=[800, 400])), "not in the file"),
    "offsets below nought": (edit_header(lambda h: h[WORDS].update(data_offsets=[-8, 8])), "not in the file"),
    "offsets of text": (edit_header(lambda h: h[WORDS].update(data_offsets=["0", "8"])), "not two numbers"),
    "a shape that overflows": (edit_header(lambda h: h[WORDS].update(shape=[2 ** 62, 16])), "sizes that can be"),
    "a shape that is too small": (edit_header(lambda h: h[WORDS].update(shape=[1, 16])), "does not make up"),
    "another shape": (edit("config.json", lambda c: c.update(vocab_size=c["vocab_size"] + 1)), "as config.json says"),
    "more layers": (edit("config.json", lambda c: c.update(num_hidden_layers=3)), "encoder.layer.2"),
    "integers": (edit_header(lambda h: h["embeddings.LayerNorm.weight"].update(dtype="I32")), "I32 numbers are not done"),
    "an unknown type": (edit_header(lambda h: h[WORDS].update(dtype="Q4")), "dtype"),
    "another family": (edit("config.json", lambda c: c.update(model_type="llama")), "bert and mpnet are done"),
    "another activation": (edit("config.json", lambda c: c.update(hidden_act="silu")), "hidden_act"),
    "no layers": (edit("config.json", lambda c: c.update(num_hidden_layers=0)), "num_hidden_layers"),
    "a billion layers": (edit("config.json", lambda c: c.update(num_hidden_layers=10 ** 9)), "num_hidden_layers"),
    "odd heads": (edit("config.json", lambda c: c.update(num_attention_heads=3)), "multiples of 8"),
    "another module": (edit("modules.json", lambda m: m[2].update(type="sentence_transformers.models.Dense")), "Dense"),
    "a module elsewhere": (edit("modules.json", lambda m: m[1].update(path="../../etc")), "plain folder name"),
    "two poolings": (edit("1_Pooling/config.json", lambda p: p.update(pooling_mode_max_tokens=True)), "not done"),
    "no pooling": (edit("1_Pooling/config.json", lambda p: p.update(pooling_mode_mean_tokens=False)), "no pooling_mode"),
    "byte pairs": (edit("tokenizer.json", lambda t: t["model"].update(type="BPE")), "only WordPiece is done"),
    "another normalizer": (edit("tokenizer.json", lambda t: t["normalizer"].update(type="NFKC")), "BertNormalizer"),
    "no [UNK]": (edit("tokenizer.json", lambda t: t["model"]["vocab"].pop("[UNK]")), "has no [UNK]"),
    "a token too many": (edit("tokenizer.json", lambda t: t["model"]["vocab"].update(zz=5000)), "has a token 5000"),
    "an added token too many": (edit("tokenizer.json", lambda t: t["added_tokens"][0].update(id=7000)), "token 7000"),
    "broken JSON": (write("config.json", b"{"), "config.json"),
    "a prompt": (write("config_sentence_transformers.json", b'{"default_prompt_name":"query"}'), "prompts are not done"),
    "a pipe": (lambda folder: (remove("config.json")(folder), os.mkfifo(folder / "config.json")), "is no file"),
    "a folder for a file": (lambda folder: (remove("model.safetensors")(folder), (folder / "model.safetensors").mkdir()),
                            "no file of"),
    "too many tokens": (lambda folder: (
        edit("config.json", lambda c: c.update(max_position_embeddings=16384, intermediate_size=65536))(folder),
        remove("sentence_bert_config.json")(folder), remove("tokenizer_config.json")(folder)), "would need more than"),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good") / "small"
    reference.make(folder)
    return folder


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_folder_is_refused_with_a_reason(good, tmp_path, name):
    damage, reason = BROKEN[name]
    shutil.copytree(good, tmp_path / "bad")
    damage(tmp_path / "bad")
    ended = call("models", "add", tmp_path / "bad", "--data-dir", tmp_path / "data")
    assert ended.status in (1, 2) and reason in ended.stderr, ended
    assert os.listdir(tmp_path / "data/models") == []


# -- Installing --------------------------------------------------------------------------------------

def test_models_are_installed_listed_and_found_by_name(good, tmp_path):
    data = ("--data-dir", tmp_path / "data")
    assert "No model is installed" in call("models", "list", *data).stdout
    assert "models add" in call("models", "embed", "x", *data).stderr
    assert call("models", "add", good, *data).stdout == "small: bert, 32 dimensions, 40 tokens\n"
    vectors, used = embed(None, ["hello world"], data=tmp_path / "data")
    assert used == {"small"} and vectors.shape == (1, 32)
    again = call("models", "add", good, *data)
    assert again.status == 1 and "--replace" in again.stderr
    assert call("models", "add", good, "--replace", *data).status == 0
    assert call("models", "add", good, "--name", "sentence-transformers/other", *data).status == 0
    listed = json.loads(call("models", "list", "--json", *data).stdout)
    assert [one["name"] for one in listed] == ["other", "small"]
    assert listed[1] == {"name": "small", "kind": "bert", "dimension": 32, "max_tokens": 40, "normalized": True,
                         "weights_bytes": (good / "model.safetensors").stat().st_size}
    assert "which model?" in call("models", "embed", "x", *data).stderr
    assert "did you mean small?" in call("models", "embed", "x", "--model", "smal", *data).stderr
    assert call("models", "embed", "x", "--model", "../small", *data).status == 0  # a name, never a path
    assert call("models", "embed", "x", "--models.default", "org/other", *data).status == 0
    assert sorted(os.listdir(tmp_path / "data/models")) == ["other", "small"]


def test_a_broken_model_is_listed_with_its_problem(good, tmp_path):
    data = ("--data-dir", tmp_path / "data")
    call("models", "add", good, *data)
    (tmp_path / "data/models/small/config.json").unlink()
    ended = call("models", "list", *data)
    assert ended.status == 0 and "cannot be used" in ended.stdout and "no config.json" in ended.stdout


def test_what_an_addition_left_behind_is_cleared_by_the_next(good, tmp_path):
    left = tmp_path / "data/models/.adding/1_Pooling"
    left.mkdir(parents=True)
    (left / "config.json").write_text("{}")
    assert call("models", "list", "--data-dir", tmp_path / "data").stdout.startswith("No model")
    assert call("models", "add", good, "--data-dir", tmp_path / "data").status == 0
    assert os.listdir(tmp_path / "data/models") == ["small"]


def test_a_folder_of_links_as_in_a_cache_is_copied_under_the_models_name(good, tmp_path):
    snapshot = tmp_path / "models--sentence-transformers--tiny--er/snapshots/0a1b2c"
    (snapshot / "1_Pooling").mkdir(parents=True)
    for path in good.rglob("*"):
        if path.is_file():
            (snapshot / path.relative_to(good)).symlink_to(path)
    assert call("models", "add", snapshot, "--data-dir", tmp_path / "data").stdout.startswith("tiny--er: bert")
    assert not (tmp_path / "data/models/tiny--er/config.json").is_symlink()


def test_lines_that_are_wrong_are_named(good, tmp_path):
    place = ("--models.directory", good.parent)
    for stdin, said in ((b'{"text":"a"}\n{"txt":1}\n', "line 2"), (b"{", "line 1"), (b"[]", "line 1")):
        ended = call("models", "embed", "--jsonl", *place, stdin=stdin)
        assert ended.status == 2 and said in ended.stderr
    for wrong in (["embed"], ["embed", "--jsonl", "x"], ["add"], ["nonsense"], [], ["list", "--nonsense"],
                  ["add", "/nowhere"], ["add", good, "--name", ".x"]):
        assert call("models", *wrong, "--data-dir", tmp_path / "d").status == 2, wrong
    assert call("models", "--help").stdout.startswith("Usage: retort models")
