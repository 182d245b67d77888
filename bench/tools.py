# SPDX-License-Identifier: Apache-2.0
"""Rows about tools: what a call from code costs, and what code keeps out of a model's context.

The comparison is the commit analysis of the README, twice: a model that calls the tool gets all its
result into the context; one that sends code gets the answer. Its servers are those of the tests.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from client import serving
from peers import BUILD, ROOT
from table import add, percentiles

sys.path.insert(0, os.path.join(ROOT, "tests", "code_execution"))
TRIPS = {
    "python": """
import time
took = []
for _ in range(3000):
    began = time.perf_counter()
    pii.count(1)
    took.append(time.perf_counter() - began)
return sorted(took)[len(took) // 2] * 1e6""",
    "javascript": """
const took = [];
for (let i = 0; i < 3000; i++) {
    const began = performance.now();
    await pii.count(1);
    took.push(performance.now() - began);
}
return took.sort((a, b) => a - b)[took.length >> 1] * 1e3;""",
}


def tool_call():
    peer = float(subprocess.run([os.path.join(BUILD, "pipe-trip")], stdout=subprocess.PIPE, check=True).stdout)
    with serving() as server, server.connect() as line:
        for language, name in (("python", "Python"), ("javascript", "JavaScript")):
            body = {"language": language, "code": TRIPS[language]}
            value = min(line.post("/v1/executions", body)["result"] for _ in range(3))
            add("call of a tool in the daemon from %s" % name, value, "us p50",
                "one pipe round trip, two processes", peer, 0.25)


ANALYSIS = """
const commits = await github.listCommits({limit: 1000});
const recent = commits.filter(commit => isLastWeek(commit.date));
const by = {};
for (const commit of recent) by[commit.author] = (by[commit.author] ?? 0) + 1;
return {total: recent.length, authors: Object.keys(by).length, by};"""
ROUNDS, CHARS_PER_TOKEN = 9, 4


def timed(ask):
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        text = ask()
        times.append((time.perf_counter() - began) * 1000)
    return percentiles(times)[50], -(-len(text) // CHARS_PER_TOKEN)


def comparison():
    from story import commits, configuration
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "commits.json").write_text(json.dumps(commits()))
        (folder / "mcp.json").write_text(json.dumps(configuration(folder)))
        with serving("--mcp-config", str(folder / "mcp.json")) as server, server.connect() as line:
            direct = timed(lambda: json.dumps(line.post(
                "/v1/tools/github:list_commits/call", {"arguments": {"limit": 1000}})["result"]))
            code = timed(lambda: json.dumps(line.post(
                "/v1/executions", {"language": "javascript", "code": ANALYSIS})["result"]))
    add("commit analysis by code: until the answer", code[0], "ms p50", "the tool called directly", direct[0], 0)
    add("commit analysis by code: in the context", code[1] + len(ANALYSIS) // CHARS_PER_TOKEN, "tokens",
        "the tool called directly", direct[1], 100)
