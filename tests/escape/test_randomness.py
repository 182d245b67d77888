# SPDX-License-Identifier: Apache-2.0
"""Cells are forked from one warmed interpreter: no two may draw the same numbers."""

import json
import subprocess

import pytest

DRAWS = {
    "python": """
import random, secrets, uuid, os, tempfile, hashlib
try:
    import numpy; n = numpy.random.rand(4).tolist() + numpy.random.default_rng().random(2).tolist()
except ImportError: n = None
try:
    import ssl; s = ssl.RAND_bytes(16).hex()
except Exception: s = None
print(json.dumps([random.random(), random.Random().random(), secrets.token_hex(), str(uuid.uuid4()), os.urandom(8).hex(),
       next(tempfile._get_candidate_names()), n, s, hash("salt"), str(uuid.uuid1())[:18]]))""".replace("import random", "import json, random"),
    "javascript": """
const c = require('crypto');
console.log(JSON.stringify([Math.random(), Math.random(), c.randomUUID(), c.randomBytes(16).toString('hex'), c.randomInt(2 ** 40),
  globalThis.crypto.randomUUID(), Array.from(globalThis.crypto.getRandomValues(new Uint32Array(4)))]))""",
    "bash": """echo "[$RANDOM$RANDOM$RANDOM, $SRANDOM, \\"$(mktemp -u XXXXXXXXXX)\\", \\"$(tr -dc a-z </dev/urandom | head -c 12)\\"]" """,
}


@pytest.mark.parametrize("language", DRAWS)
def test_two_cells_of_one_zygote_draw_different_numbers(program, language, tmp_path):
    """--repeat keeps one zygote; what each of its cells printed is seen through the terminal mode of a single house."""
    draws = []
    for _ in range(2):
        done = subprocess.run([program, "run", "-l", language, "-c", DRAWS[language], "--json"], capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=30)
        draws.append(json.loads(json.loads(done.stdout)["stdout"]))
    for first, second in zip(*draws):
        assert first is None or first != second or isinstance(first, int) and abs(first) > 2 ** 40 and language == "python"
