# SPDX-License-Identifier: Apache-2.0
"""Cells are forked from one warmed interpreter: no two may draw the same numbers.

--repeat keeps one zygote but shows no output, so each cell tosses a coin and fails on heads. Cells that
inherit their state all fall the same way; fifty fresh ones do so once in 2 ** 49 tries.
"""

import json

import pytest

RUNS = 50
COINS = {
    "python random": ("python", "import random\nassert random.random() < 0.5"),
    "python Random()": ("python", "import random\nassert random.Random().random() < 0.5"),
    "python secrets": ("python", "import secrets\nassert secrets.randbits(1)"),
    "python uuid4": ("python", "import uuid\nassert uuid.uuid4().int >> 127"),
    "python urandom": ("python", "import os\nassert os.urandom(1)[0] & 1"),
    "python temporary names": ("python", "import tempfile\nassert ord(next(tempfile._get_candidate_names())[0]) & 1"),
    "python OpenSSL": ("python", "import ssl\nassert ssl.RAND_bytes(1)[0] & 1"),
    "python libc rand": ("python", "import ctypes\nassert ctypes.CDLL(None).rand() & 1"),
    "python numpy": ("python", "try:\n    import numpy\nexcept ImportError:\n    import random; assert random.random() < 0.5\n"
                               "else:\n    assert numpy.random.rand() < 0.5"),
    "node Math.random": ("javascript", "if (Math.random() < 0.5) throw new Error('heads')"),
    "node randomUUID": ("javascript", "if (parseInt(require('crypto').randomUUID()[0], 16) & 1) throw new Error('heads')"),
    "node randomBytes": ("javascript", "if (require('crypto').randomBytes(1)[0] & 1) throw new Error('heads')"),
    "node web crypto": ("javascript", "if (crypto.getRandomValues(new Uint8Array(1))[0] & 1) throw new Error('heads')"),
    "bash RANDOM": ("bash", "exit $((RANDOM & 1))"),
    "bash SRANDOM": ("bash", "exit $((SRANDOM & 1))"),
    "bash urandom": ("bash", "exit $(( $(od -An -N1 -tu1 /dev/urandom) & 1 ))"),
}


@pytest.mark.parametrize("name", COINS)
def test_cells_of_one_zygote_draw_different_numbers(retort, name):
    language, code = COINS[name]
    done = retort("run", "-l", language, "-c", code, "--repeat", RUNS, "--json")
    failed = json.loads(done.stdout)["failed"]
    assert 0 < failed < RUNS
