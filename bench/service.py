# SPDX-License-Identifier: Apache-2.0
"""Rows about the service: the same questions, asked over HTTP of a server with its defaults."""

import json
import os
import re
import subprocess
import tempfile
import time

import peers
from cells import SUM, big_table, time_branches
from client import request, serving
from peers import BUILD, HELLO, HERE, PACE_SECONDS, PYTHON, ROUNDS
from table import add, percentiles, spread

RUNS = "/v1/executions"
NAMES = {"python": "Python", "javascript": "JavaScript", "typescript": "TypeScript", "bash": "Bash"}
WARM_UP = 20  # runs until the zygote is there and the pool is full


def run_request(language, **more):
    return request("POST", RUNS, {"language": language, "code": HELLO[language], **more})


def time_runs(line, language, rounds, pace):
    """One run each `pace` seconds, or as soon as the last one is answered."""
    message, times = run_request(language), []
    due = time.perf_counter()
    for i in range(WARM_UP + rounds):
        due = max(due + pace, time.perf_counter())
        time.sleep(max(0, due - time.perf_counter()))
        times.append(line.time(message))
        if i < WARM_UP:
            time.sleep(PACE_SECONDS)
    return percentiles(times[WARM_UP:])


def rows_of(server, language, pace, *peers_of_it):
    with server.connect() as line:
        found = time_runs(line, language, ROUNDS * 3, pace)
    name = "%s over HTTP, %s" % (NAMES[language], "warm pool" if pace else "no pool")
    for peer, value, must in peers_of_it:
        add(name, found[50], "ms p50", peer, value, must, detail=spread(found))


def http_cold():
    with serving("--execution.pool", "0") as server, peers.BareZygote("python") as bare:
        rows_of(server, "python", 0, ("bwrap python3 -c", peers.bwrap_python(), 10),
                ("its guest, forked, unsealed", bare.time("python", False), 0))


AGE_SECONDS = 12  # of a zygote: V8 has timers of 8 s, and a service is up for longer


def http_warm():
    with serving() as server, peers.BareZygote("python") as python, peers.BareZygote("node") as node:
        with server.connect() as line:
            for language in HELLO:
                line.time(run_request(language))
        due = time.perf_counter() + AGE_SECONDS
        others = {
            "python": [("bwrap python3 -c", peers.bwrap_python(), 15)],
            "javascript": [("node -e", peers.node(), 20), ("deno run x.js", peers.deno("javascript"), 10)],
            "typescript": [("deno run x.ts", peers.deno("typescript"), 8)],
            "bash": [("bwrap bash -c", peers.bwrap_bash(), 1)],
        }
        time.sleep(max(0, due - time.perf_counter()))
        for language, bare in (("python", python), ("javascript", node), ("typescript", node)):
            others[language].append(("its guest, forked ahead, unsealed", bare.time(language, True), 0))
        for language in HELLO:
            rows_of(server, language, PACE_SECONDS, *others[language])


# -- the cache -------------------------------------------------------------------------------------

CACHED = {"code": HELLO["python"], "cache": "use"}
LOAD_CONNECTIONS, LOAD_SECONDS, LOAD_TURNS = 16, 3, 2


def load(port):
    """Requests a second, all answered with 200."""
    argv = ["wrk", "-t1", "-c%d" % LOAD_CONNECTIONS, "-d%ds" % LOAD_SECONDS, "-s", HERE + "/post.lua",
            "http://127.0.0.1:%d%s" % (port, RUNS), "--", json.dumps(CACHED)]
    out = subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True).stdout
    assert "Non-2xx" not in out and "Socket errors" not in out, out
    return float(re.search(r"Requests/sec: +([\d.]+)", out).group(1))


def cache():
    """The two take turns, so that a slow moment of the machine hits both; the best turn counts."""
    with serving() as server, server.connect() as line:
        line.post(RUNS, CACHED)
        body = line.send(request("POST", RUNS, CACHED)).body
        assert json.loads(body)["cached"], body
        constant = subprocess.Popen([os.path.join(BUILD, "mhd-constant"), str(len(body))],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            port = int(constant.stdout.readline())
            turns = [(load(server.port), load(port)) for _ in range(LOAD_TURNS)]
        finally:
            constant.stdin.close()
            constant.wait()
    ours, peer = (max(side) for side in zip(*turns))
    add("cache hits a second over HTTP", ours, "/s", "libmicrohttpd with a constant", peer, 0.4,
        ratio=ours / peer, detail="%d bytes, %d connections" % (len(body), LOAD_CONNECTIONS))


# -- many at once ----------------------------------------------------------------------------------

BURST, BURSTS = 100, 5


def http_burst():
    message, medians, worst, failed = run_request("python"), [], 0, 0
    with serving() as server:
        with server.connect() as line:
            for _ in range(WARM_UP):
                line.time(message)
        for _ in range(BURSTS):
            time.sleep(1)  # a burst comes after quiet: the pool is full again
            done = server.at_once(message, BURST)
            failed += sum(b'"success":true' not in answer.body for answer, _ in done)
            times = [took for _, took in done]
            medians.append(percentiles(times)[50])
            worst = max(worst, *times)
    assert failed == 0, "%d of %d runs of a burst failed" % (failed, BURST * BURSTS)
    add("burst of 100 Python runs over HTTP", percentiles(medians)[50], "ms p50",
        "best hosted service, published", 367, 367 / 150,
        detail="none of %d failed, the slowest %.0f" % (BURST * BURSTS, worst))


# -- sessions --------------------------------------------------------------------------------------

def run_in(line, session, code):
    answer = line.post("/v1/sessions/%s/execute" % session, {"code": code})
    assert answer["success"], answer
    return answer


def http_branch():
    with serving() as server, server.connect() as line:
        session = line.post("/v1/sessions", {"language": "python"})["id"]
        run_in(line, session, peers.STATE)
        message = request("POST", "/v1/sessions/%s/branch" % session, {})

        def once():
            began = time.perf_counter()
            answer = line.send(message)
            took = (time.perf_counter() - began) * 1000
            assert answer.status in (200, 201), bytes(answer.data)
            line.ask("DELETE", "/v1/sessions/%s" % json.loads(answer.body)["id"])
            return took
        time_branches("branch over HTTP, 100 MB of state", once)


UPLOADS = 3
ROOMY = {"memory_mb": 2048, "timeout": "60s"}


def upload():
    with tempfile.TemporaryDirectory() as folder, serving() as server, server.connect() as line:
        path, script = big_table(folder)
        peer = peers.time_command([PYTHON, script], UPLOADS)
        with open(path, "rb") as file:
            data = file.read()
        size = len(data) / 1e6
        session = line.post("/v1/sessions", {"language": "python", "policy": ROOMY})["id"]
        sums = SUM % "open('data.csv').read().splitlines()"
        put = request("PUT", "/v1/sessions/%s/files/data.csv" % session, data, "application/octet-stream")
        post = request("POST", RUNS, {"code": SUM % "input_data.splitlines()", "policy": ROOMY,
                                      "input": data.decode()})
        puts, runs, posts = [], [], []
        for _ in range(UPLOADS):
            began = time.perf_counter()
            assert line.send(put).status == 204
            halfway = time.perf_counter()
            run_in(line, session, sums)
            puts.append((halfway - began) * 1000)
            runs.append((time.perf_counter() - began) * 1000)
            posts.append(line.time(post))
        line.ask("DELETE", "/v1/sessions/%s" % session)
    add("%.0f MB put into a session and summed there" % size, percentiles(runs)[50], "ms p50",
        "the same script, unsandboxed", peer, 0, detail="%.0f of them the upload" % percentiles(puts)[50])
    add("%.0f MB posted as JSON input and summed" % size, percentiles(posts)[50], "ms p50",
        "the same script, unsandboxed", peer, 0)
