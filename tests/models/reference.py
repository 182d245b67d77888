# SPDX-License-Identifier: Apache-2.0
"""Sentence models once more, in Python: written from the papers and the published layouts, to judge the C by.

BERT (Devlin et al. 2018), MPNet (Song et al. 2020), mean pooling (Reimers, Gurevych 2019), WordPiece with
BERT's basic tokenizer, and the safetensors format. It pads and masks where the C does not, computes in
double precision unless told otherwise, and shares nothing with it. `make` writes a folder with random
weights in the form models are published in.
"""

import json
import math
import os
import struct
import unicodedata

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products: more threads only wait for each other

import numpy as np  # noqa: E402

BERT_SPECIALS = {"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]",
                 "mask_token": "[MASK]"}
MPNET_SPECIALS = {"bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "cls_token": "<s>",
                  "unk_token": "[UNK]", "pad_token": "<pad>", "mask_token": "<mask>"}


# -- Tokens ------------------------------------------------------------------------------------------

def is_cjk(c):
    return any(low <= ord(c) <= high for low, high in (
        (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
        (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)))


def is_punctuation(c):
    return 33 <= ord(c) <= 126 and not c.isalnum() or unicodedata.category(c)[0] == "P"


def basic_words(text, lowers):
    kept = ""
    for c in text:
        if c in "\t\n\r" or unicodedata.category(c) in ("Zs", "Zl", "Zp"):
            kept += " "
        elif c not in "\0\ufffd" and unicodedata.category(c) not in ("Cc", "Cf", "Co"):
            kept += f" {c} " if is_cjk(c) else c
    if lowers:
        kept = "".join(c for c in unicodedata.normalize("NFD", kept) if unicodedata.category(c) != "Mn")
        kept = "".join(c.lower() for c in kept)
    return "".join(f" {c} " if is_punctuation(c) else c for c in kept).split(" ")


class Tokenizer:
    def __init__(self, vocabulary, specials, lowers=True):
        self.ids, self.lowers = vocabulary, lowers
        self.first, self.last = vocabulary[specials["cls_token"]], vocabulary[specials["sep_token"]]
        self.unknown = vocabulary[specials["unk_token"]]
        self.specials = sorted(set(specials.values()), key=len, reverse=True)

    def pieces(self, word):
        found, at = [], 0
        while at < len(word) and len(word) <= 100:
            for end in range(len(word), at, -1):
                piece = ("##" if at else "") + word[at:end]
                if piece in self.ids:
                    found.append(self.ids[piece])
                    at = end
                    break
            else:
                return [self.unknown]
        return found if len(word) <= 100 else [self.unknown]

    def parts(self, text):
        """The text between special tokens, and these."""
        at = begun = 0
        while at < len(text):
            special = next((s for s in self.specials if text.startswith(s, at)), None)
            if special:
                yield text[begun:at], None
                yield None, special
                begun = at = at + len(special)
            else:
                at += 1
        yield text[begun:], None

    def __call__(self, text, most):
        ids = []
        for plain, special in self.parts(text):
            if special:
                ids.append(self.ids[special])
            else:
                ids += [i for word in basic_words(plain, self.lowers) if word for i in self.pieces(word)]
        return [self.first, *ids[:most - 2], self.last]


# -- The encoders ------------------------------------------------------------------------------------

ERF = np.vectorize(math.erf, otypes=[np.float64])


def erf_quick(x):
    """Abramowitz and Stegun 7.1.26, for measuring speed without a loop in Python."""
    t = 1 / (1 + np.float32(0.3275911) * np.abs(x))
    p = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    return np.sign(x) * (1 - p.astype(x.dtype) * np.exp(-x * x))


def bucket(distance, buckets):
    """Of key minus query, as MPNet's authors (and T5's before them) count it."""
    half = buckets // 2
    exact, n = half // 2, abs(distance)
    base = half if distance > 0 else 0
    if n < exact:
        return base + n
    steps = np.log(np.float32(n) / np.float32(exact)) / np.float32(math.log(128 / exact))
    return base + min(half - 1, exact + int(steps * np.float32(half - exact)))


class Model:
    """What rt_model should answer, from the tensors and settings of a folder."""

    def __init__(self, config, tensors, *, max_tokens, pooling="mean", normalizes=True, dtype=np.float64):
        self.config, self.max_tokens, self.pooling, self.normalizes = config, max_tokens, pooling, normalizes
        self.w = {name: value.astype(dtype) for name, value in tensors.items()}
        self.erf = ERF if dtype == np.float64 else erf_quick
        self.dtype = dtype

    def linear(self, x, name):
        return x @ self.w[name + ".weight"].T + self.w[name + ".bias"]

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.config["layer_norm_eps"])
        return x * self.w[name + ".weight"] + self.w[name + ".bias"]

    def activate(self, x):
        if self.config["hidden_act"] == "relu":
            return np.maximum(x, 0)
        if self.config["hidden_act"] == "gelu_new":
            return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))
        return 0.5 * x * (1 + self.erf(x / self.dtype(math.sqrt(2))))

    def attention(self, x, mask, names, bias):
        heads, (texts, tokens, hidden) = self.config["num_attention_heads"], x.shape
        q, k, v = (self.linear(x, n).reshape(texts, tokens, heads, -1).transpose(0, 2, 1, 3) for n in names[:3])
        scores = q @ k.transpose(0, 1, 3, 2) / self.dtype(math.sqrt(hidden // heads))
        scores = scores + bias + np.where(mask, 0, -1e30)[:, None, None, :].astype(self.dtype)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores = scores / scores.sum(-1, keepdims=True)
        return self.linear((scores @ v).transpose(0, 2, 1, 3).reshape(x.shape), names[3])

    def embed_tokens(self, batch):
        """Lists of ids, padded to the longest."""
        mpnet, pad = self.config["model_type"] == "mpnet", self.config["pad_token_id"]
        longest = max(map(len, batch))
        ids = np.array([one + [pad] * (longest - len(one)) for one in batch])
        mask = np.array([[True] * len(one) + [False] * (longest - len(one)) for one in batch])
        positions = np.cumsum(ids != pad, 1) * (ids != pad) + pad if mpnet else np.arange(longest)[None, :]
        x = self.w["embeddings.word_embeddings.weight"][ids]
        x = x + self.w["embeddings.position_embeddings.weight"][positions]
        bias = self.dtype(0)
        if mpnet:
            distances = [[bucket(key - query, self.config["relative_attention_num_buckets"])
                          for key in range(longest)] for query in range(longest)]
            bias = self.w["encoder.relative_attention_bias.weight"][np.array(distances)].transpose(2, 0, 1)[None]
        else:
            x = x + self.w["embeddings.token_type_embeddings.weight"][0]
        x = self.norm(x, "embeddings.LayerNorm")
        for i in range(self.config["num_hidden_layers"]):
            x = self.layer(x, mask, f"encoder.layer.{i}.", mpnet, bias)
        return self.pool(x, mask)

    def layer(self, x, mask, at, mpnet, bias):
        if mpnet:
            names, norm = [at + "attention.attn." + n for n in "qkvo"], "attention.LayerNorm"
        else:
            names = [at + "attention.self." + n for n in ("query", "key", "value")] + [at + "attention.output.dense"]
            norm = "attention.output.LayerNorm"
        x = self.norm(x + self.attention(x, mask, names, bias), at + norm)
        inner = self.activate(self.linear(x, at + "intermediate.dense"))
        return self.norm(x + self.linear(inner, at + "output.dense"), at + "output.LayerNorm")

    def pool(self, x, mask):
        if self.pooling == "cls":
            out = x[:, 0]
        elif self.pooling == "max":
            out = np.where(mask[..., None], x, -1e30).max(1)
        else:
            out = (x * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        return out / np.linalg.norm(out, axis=1, keepdims=True) if self.normalizes else out


# -- Folders -----------------------------------------------------------------------------------------

def bytes_of(array, dtype):
    if dtype == "BF16":
        return (array.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
    return array.astype("<f2" if dtype == "F16" else "<f4").tobytes()


def rounded(array, dtype):
    """The array as it is after it was written with this type."""
    if dtype == "BF16":
        return (array.astype("<f4").view("<u4") >> 16 << 16).view("<f4")
    return array.astype("<f2").astype("<f4") if dtype == "F16" else array.astype("<f4")


def safetensors(tensors, dtype="F32", padding=None):
    """`padding`: spaces after the header; by default as many as align what follows."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, value in tensors.items():
        raw = bytes_of(value, dtype)
        header[name] = {"dtype": dtype, "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8 if padding is None else padding)
    return struct.pack("<Q", len(text)) + text + data


def random_tensors(config, seed=7):
    chance = np.random.default_rng(seed)
    hidden, inner, mpnet = config["hidden_size"], config["intermediate_size"], config["model_type"] == "mpnet"
    made = {}

    def matrix(name, rows, columns, scale=0.3):
        made[name] = chance.normal(0, scale, (rows, columns)).astype(np.float32)

    def linear(name, inputs, outputs):
        matrix(name + ".weight", outputs, inputs, 1.5 / math.sqrt(inputs))
        made[name + ".bias"] = chance.normal(0, 0.1, outputs).astype(np.float32)

    def norm(name):
        made[name + ".weight"] = chance.normal(1, 0.1, hidden).astype(np.float32)
        made[name + ".bias"] = chance.normal(0, 0.1, hidden).astype(np.float32)

    matrix("embeddings.word_embeddings.weight", config["vocab_size"], hidden)
    matrix("embeddings.position_embeddings.weight", config["max_position_embeddings"], hidden)
    if mpnet:
        matrix("encoder.relative_attention_bias.weight", config["relative_attention_num_buckets"],
               config["num_attention_heads"], 1)
    else:
        matrix("embeddings.token_type_embeddings.weight", config["type_vocab_size"], hidden)
    norm("embeddings.LayerNorm")
    for i in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{i}."
        names = ["attn.q", "attn.k", "attn.v", "attn.o"] if mpnet else ["self.query", "self.key", "self.value",
                                                                        "output.dense"]
        for name in names:
            linear(at + "attention." + name, hidden, hidden)
        norm(at + ("attention.LayerNorm" if mpnet else "attention.output.LayerNorm"))
        linear(at + "intermediate.dense", hidden, inner)
        linear(at + "output.dense", inner, hidden)
        norm(at + "output.LayerNorm")
    return made


def vocabulary(kind, size=None):
    """Pieces as they might be; `size` fills up with pieces nobody writes."""
    words = ["<s>", "<pad>", "</s>", "<mask>", "[UNK]"] if kind == "mpnet" else list(BERT_SPECIALS.values())
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    words += [*letters, *("##" + c for c in letters), *"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~¿—。「」東京天気猫ßøłσς"]
    words += ["##ß", "##ø", "ᄒ", "##ᅡ", "##ᆫ", "the", "cat", "sat", "on", "mat", "un", "##aff", "##able", "runn",
              "##ing", "##er", "hello", "world", "naive", "cafe", "embed", "##ding", "##s", "tool"]
    words = list(dict.fromkeys(words))
    words += [f"[unused{i}]" for i in range((size or 0) - len(words))]
    return {word: i for i, word in enumerate(words)}


def config_of(kind, vocab, *, hidden=32, heads=4, layers=2, inner=64, positions=64, act="gelu"):
    config = {"model_type": kind, "hidden_act": act, "hidden_size": hidden, "intermediate_size": inner,
              "num_attention_heads": heads, "num_hidden_layers": layers, "vocab_size": len(vocab),
              "max_position_embeddings": positions}
    if kind == "mpnet":
        return {**config, "architectures": ["MPNetForMaskedLM"], "layer_norm_eps": 1e-5, "pad_token_id": 1,
                "bos_token_id": 0, "eos_token_id": 2, "relative_attention_num_buckets": 32}
    return {**config, "architectures": ["BertModel"], "layer_norm_eps": 1e-12, "pad_token_id": 0,
            "position_embedding_type": "absolute", "type_vocab_size": 2}


def tokenizer_json(vocab, specials, lowers=True):
    added = [{"id": vocab[s], "special": True, "content": s, "single_word": False, "lstrip": s == "<mask>",
              "rstrip": False, "normalized": False} for s in sorted(set(specials.values()))]
    return {"version": "1.0", "padding": None, "added_tokens": added,
            "truncation": {"max_length": 128, "strategy": "LongestFirst", "stride": 0},
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                           "strip_accents": None, "lowercase": lowers},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "BertProcessing", "cls": [specials["cls_token"], vocab[specials["cls_token"]]],
                               "sep": [specials["sep_token"], vocab[specials["sep_token"]]]},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": 100, "vocab": vocab}}


def make(folder, kind="bert", *, pooling="mean", normalizes=True, max_tokens=40, dtype="F32", padding=None,
         vocab_size=None, tokens_in="tokenizer.json", prefix="", lowers=True, **sizes):
    """Writes the folder; returns (Model, Tokenizer) to compare with."""
    vocab = vocabulary(kind, vocab_size)
    config, specials = config_of(kind, vocab, **sizes), MPNET_SPECIALS if kind == "mpnet" else BERT_SPECIALS
    tensors = random_tensors(config)
    modules = ["Transformer", "Pooling"] + ["Normalize"] * normalizes
    files = {
        "config.json": config,
        "modules.json": [{"idx": i, "name": str(i), "path": "" if i == 0 else f"{i}_{name}",
                          "type": f"sentence_transformers.models.{name}"} for i, name in enumerate(modules)],
        "sentence_bert_config.json": {"max_seq_length": max_tokens, "do_lower_case": False},
        "1_Pooling/config.json": {"word_embedding_dimension": config["hidden_size"],
                                  "pooling_mode_cls_token": pooling == "cls",
                                  "pooling_mode_mean_tokens": pooling == "mean",
                                  "pooling_mode_max_tokens": pooling == "max",
                                  "pooling_mode_mean_sqrt_len_tokens": False},
        "tokenizer_config.json": {"do_lower_case": lowers, "strip_accents": None, "tokenize_chinese_chars": True,
                                  "model_max_length": 512, **specials},
        "special_tokens_map.json": specials,
    }
    if tokens_in == "tokenizer.json":
        files["tokenizer.json"] = tokenizer_json(vocab, specials, lowers)
    (folder / "1_Pooling").mkdir(parents=True)
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value))
    if tokens_in == "vocab.txt":
        (folder / "vocab.txt").write_text("".join(word + "\n" for word in vocab))
    (folder / "model.safetensors").write_bytes(
        safetensors({prefix + name: value for name, value in tensors.items()}, dtype, padding))
    model = Model(config, {name: rounded(value, dtype) for name, value in tensors.items()}, max_tokens=max_tokens,
                  pooling=pooling, normalizes=normalizes)
    return model, Tokenizer(vocab, specials, lowers)


def read_safetensors(path):
    """The F32 tensors of a file, mapped."""
    raw = np.memmap(path, np.uint8, "r")
    size = struct.unpack("<Q", raw[:8].tobytes())[0]
    header = json.loads(raw[8:8 + size].tobytes())
    return {name: raw[8 + size + begin:8 + size + end].view("<f4").reshape(one["shape"])
            for name, one in header.items() if name != "__metadata__" and one["dtype"] == "F32"
            for begin, end in [one["data_offsets"]]}
