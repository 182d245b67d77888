# SPDX-License-Identifier: Apache-2.0
"""Rows about personal data: how fast it is found, and what looking for it costs a run."""

import json
import os
import subprocess
import time

from client import request, serving
from peers import BUILD, PACE_SECONDS, ROOT, ROUNDS
from table import add, percentiles, spread

DOCS = os.path.join(ROOT, "docs")
LABELLED = os.path.join(ROOT, "tests", "privacy")
TEXTS = (
    ("few", "prose, few matches", 300, [os.path.join(ROOT, "LICENSE"), os.path.join(ROOT, "README.md"),
                                        *(os.path.join(DOCS, name) for name in sorted(os.listdir(DOCS)))]),
    ("full", "lines full of matches", 50, [os.path.join(LABELLED, name) for name in ("people.txt", "mixed.txt")]),
    ("logs", "logs and code, full of numbers", 0, [os.path.join(LABELLED, "technical.txt")]),
)


def privacy_scan():
    """Of CPU time: a core is what is asked about. PCRE2's patterns find candidates and judge nothing."""
    for name, about, least, files in TEXTS:
        out = subprocess.run([os.path.join(BUILD, "privacy-bench"), name, *files], stdout=subprocess.PIPE, check=True)
        found = json.loads(out.stdout)
        detail = "%d found; PCRE2 has %d candidates" % (found["ours_found"], found["pcre2_found"])
        add("scan, %s" % about, found["ours"], "MB/s", "17 patterns by PCRE2's JIT, in turn", found["pcre2"], 0,
            ratio=found["ours"] / found["pcre2"], detail=detail)
        if least:
            add("scan, %s" % about, found["ours"], "MB/s", "what the issue asks of a core", least, 1,
                ratio=found["ours"] / least)


ROWS = [{"id": i, "name": "Customer %d" % i, "mail": "customer%d@example.org" % i, "phone": "+1 212 555 01%02d" % i,
         "city": "Springfield", "total": 100 + i, "note": "called twice, wants the blue one by Friday"}
        for i in range(20)]
CODE = "return {'count': len(inputs), 'total': sum(r['total'] for r in inputs), 'first': inputs[0]['mail']}"


def privacy_spine():
    """A typical run, 20 rows in and a summary out, with tokens and without, in turn."""
    messages = {mode: request("POST", "/v1/executions", {"code": CODE, "input": ROWS, "privacy": mode})
                for mode in ("off", "tokens")}
    times = {mode: [] for mode in messages}
    with serving() as server, server.connect() as line:
        for i in range(20 + ROUNDS * 6):
            for mode, message in messages.items():
                time.sleep(PACE_SECONDS)
                took = line.time(message)
                if i >= 20:
                    times[mode].append(took)
    off, tokens = percentiles(times["off"]), percentiles(times["tokens"])
    add("a run with privacy, 20 people in", tokens[50], "ms p50", "the same with privacy off", off[50], 1 / 1.1,
        detail=spread(tokens))
