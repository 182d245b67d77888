# SPDX-License-Identifier: Apache-2.0
"""Rows about languages: SQL over rows that come with the request, a WebAssembly module, Elixir warmed."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from client import request, serving
from peers import NODE, ROOT
from table import add, percentiles

ROWS, ROUNDS = 100_000, 7
QUERY = "SELECT name, sum(x) AS s FROM %s GROUP BY name ORDER BY s DESC LIMIT 3"


def timed(do, rounds=ROUNDS):
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        do()
        times.append((time.perf_counter() - began) * 1000)
    return percentiles(times)[50]


def shell_sql(folder, rows):
    """The sqlite3 shell reads the same JSON from a file, and makes a table of it."""
    path = os.path.join(folder, "rows.json")
    with open(path, "w") as file:
        json.dump(rows, file)
    script = ("CREATE TABLE rows AS SELECT value->>'id' AS id, value->>'name' AS name, value->>'x' AS x "
              "FROM json_each(readfile('%s')); " % path) + QUERY % "rows"
    return timed(lambda: subprocess.run(["sqlite3", ":memory:", script], check=True, stdout=subprocess.DEVNULL))


def node_wasm(folder, module):
    path = os.path.join(folder, "run.mjs")
    with open(path, "w") as file:
        file.write("import { WASI } from 'node:wasi';\nconst wasi = new WASI({ version: 'preview1' });\n"
                   "const m = await WebAssembly.compile(Buffer.from(process.argv[2], 'base64'));\n"
                   "wasi.start(await WebAssembly.instantiate(m, wasi.getImportObject()));\n")
    return timed(lambda: subprocess.run([NODE, "--no-warnings", path, module], check=True, stdout=subprocess.DEVNULL))


def languages():
    sys.path.insert(0, os.path.join(ROOT, "tests", "languages"))
    from modules import HELLO
    rows = [{"id": i, "name": "n%d" % (i % 100), "x": i / 2} for i in range(ROWS)]
    big = request("POST", "/v1/executions", {"language": "sql", "code": QUERY % "rows", "input": {"rows": rows}})
    module = request("POST", "/v1/executions", {"language": "wasm", "code": HELLO})
    elixir = request("POST", "/v1/executions", {"language": "elixir", "code": "6 * 7"})
    with tempfile.TemporaryDirectory() as folder, serving() as server, server.connect() as line:
        for message in (big, module, module, module):
            line.time(message)
        add("SQL over 100,000 input rows, over HTTP", timed(lambda: line.time(big)), "ms p50", "sqlite3 shell, json_each",
            shell_sql(folder, rows) if shutil.which("sqlite3") else None, 0)
        add("WebAssembly module, over HTTP", timed(lambda: line.time(module), 30), "ms p50", "node running the same",
            node_wasm(folder, HELLO), 0)
        if shutil.which("elixir"):
            line.time(elixir)
            time.sleep(5)
            add("Elixir over HTTP, warm pool", timed(lambda: (line.time(elixir), time.sleep(2))[0], 5) - 2000, "ms p50", "elixir -e",
                timed(lambda: subprocess.run(["elixir", "-e", "6 * 7"], check=True), 3), 0)
