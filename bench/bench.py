#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every figure beside its peer, measured in this very run: `make bench`, or some of it: ROWS="burst cache".

Prints a table and, after a whole run, writes bench/results.json, an array of
{name, value, unit, peer, peer_value, ratio, must, ok}; table.py says what they mean. `ok` is null
where a peer is missing.

    cells.py     cells without a server        client.py   a server and its client
    service.py   the same over HTTP            peers.py    what we are measured beside
    tools.py     tools called from code       privacy.py  personal data
    sentences.py sentence models

Quiet the machine first: two cores are few, and everything here takes turns on them.
"""

import json
import os
import re
import subprocess
import sys

import cells
import languages
import privacy
import sentences
import service
import table
import tools
from peers import BUILD, HERE, NODE


def json_speed():
    out = subprocess.run([os.path.join(BUILD, "json-bench")], stdout=subprocess.PIPE, text=True).stdout
    found = re.search(r"retort (\d+) MB/s, cJSON (\d+) MB/s", out)
    ours, peer = float(found.group(1)), float(found.group(2))
    table.add("JSON parsed, 2.4 MB of commits", ours, "MB/s", "cJSON", peer, 500 / 285, ratio=ours / peer)


def schema_speed():
    """JSON Schema beside ajv's compiled code: all documents of a case, parsed before."""
    ours, cases = os.path.join(BUILD, "schema-bench-ours"), os.path.join(BUILD, "schema-bench")
    scripts = os.path.join(HERE, "schema")
    subprocess.run([NODE, os.path.join(scripts, "cases.mjs"), cases], check=True)
    files = sorted(os.path.join(cases, name) for name in os.listdir(cases))

    def measured(argv):
        out = subprocess.run(argv + files, stdout=subprocess.PIPE, text=True, check=True).stdout
        return {row["name"]: row for row in map(json.loads, out.splitlines())}

    mine, theirs = measured([ours]), measured([NODE, os.path.join(scripts, "ajv.mjs")])
    for name, row in mine.items():
        peer = theirs[name]
        table.add("schema %s: %d KB checked" % (name, row["bytes"] // 1024), row["validate_us"], "us", "ajv, compiled",
                  peer["validate_us"], 3)
        table.add("schema %s: compiled" % name, row["compile_us"], "us", "ajv", peer["compile_us"], 20)


PARTS = {part.__name__: part for part in (
    cells.fresh_cells, cells.throughput, cells.burst, cells.memory, cells.big_input, cells.branch,
    service.http_cold, service.http_warm, service.cache, service.http_burst, service.http_branch,
    service.upload, languages.languages, tools.tool_call, tools.comparison, privacy.privacy_scan,
    privacy.privacy_spine, json_speed, schema_speed, sentences.sentences)}


def main():
    wanted = sys.argv[1:] or list(PARTS)
    for name in wanted:
        if name not in PARTS:
            sys.exit("no rows are called %s; there are: %s" % (name, " ".join(PARTS)))
    table.head()
    for name in wanted:
        PARTS[name]()
    if len(wanted) == len(PARTS):
        table.write(os.path.join(HERE, "results.json"))


main()
