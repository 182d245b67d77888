# SPDX-License-Identifier: Apache-2.0
"""Sentences embedded by a model of MiniLM's size (random weights), beside NumPy on one thread.

Run with a folder, this is the peer: tests/models/reference.py in single precision, in batches of 32 of
like length, its erf without a loop; it prints sentences a second.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tests", "models"))
SIZES = dict(hidden=384, heads=12, layers=6, inner=1536, positions=512, vocab_size=30522, max_tokens=256)
WORDS = "the cat sat on mat hello world naive cafe embed tool running unaffable embeddings".split()
COUNT = 400


def texts():
    chance = random.Random(5)
    return [" ".join(chance.choices(WORDS, k=chance.randrange(4, 14))) for _ in range(COUNT)]


def seconds(work, rounds=3):
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def peer(folder):
    import numpy as np
    import reference

    config = json.loads((folder / "config.json").read_text())
    model = reference.Model(config, reference.read_safetensors(folder / "model.safetensors"), max_tokens=256,
                            dtype=np.float32)
    vocab = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    tokenizer = reference.Tokenizer(vocab, reference.BERT_SPECIALS)
    batch = sorted((tokenizer(text, 256) for text in texts()), key=len)
    spent = seconds(lambda: [model.embed_tokens(batch[i:i + 32]) for i in range(0, COUNT, 32)], rounds=2)
    print(json.dumps({"per_second": COUNT / spent, "tokens": sum(map(len, batch)) / COUNT}))


def sentences():
    import reference
    from peers import PYTHON, RETORT
    from table import add

    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place, "minilm")
        reference.make(folder, **SIZES)

        def embed(some):
            lines = "".join(json.dumps({"text": text}) + "\n" for text in some)
            subprocess.run([RETORT, "models", "embed", "--jsonl", "--models.directory", place, "--model", "minilm"],
                           input=lines.encode(), stdout=subprocess.DEVNULL, check=True)

        one = seconds(lambda: embed(texts()[:1]))
        ours = (COUNT - 1) / (seconds(lambda: embed(texts())) - one)
        out = subprocess.run([PYTHON, os.path.abspath(__file__), folder], stdout=subprocess.PIPE, check=True,
                             env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}).stdout
        theirs = json.loads(out)
    add("sentences embedded, MiniLM's size, one core", ours, "per s", "NumPy with OpenBLAS, one thread",
        theirs["per_second"], 1, ratio=ours / theirs["per_second"], detail="%.0f tokens each" % theirs["tokens"])


if __name__ == "__main__":
    peer(pathlib.Path(sys.argv[1]))
