# SPDX-License-Identifier: Apache-2.0
"""Rows about cells themselves, without a server: `retort run --repeat`, and sessions by hand."""

import json
import os
import re
import signal
import subprocess
import tempfile
import time

import peers
from peers import HELLO, PYTHON, RETORT, ROUNDS
from table import add, percentiles


def time_retort(language, code, repeat, *options):
    argv = [RETORT, "run", "-l", language, "-c", code, "--json", "--repeat", str(repeat), *options]
    out = subprocess.run(argv, stdout=subprocess.PIPE, check=True, stdin=subprocess.DEVNULL).stdout
    answer = json.loads(out)
    assert answer["failed"] == 0, answer
    return answer


def spread(answer):
    return "p95 %.2f p99 %.2f" % (answer["p95_ms"], answer["p99_ms"])


def fresh_cells():
    def one(name, language, peers_of_it, *options):
        answer = time_retort(language, HELLO[language], ROUNDS * 3, *options)
        for peer, value, must in peers_of_it:
            add(name, answer["p50_ms"], "ms p50", peer, value, must, detail=spread(answer))

    paced = ("--pool", "4", "--pause", "25ms")
    python = peers.bwrap_python()
    one("Python, fresh cell, no pool", "python", [("bwrap python3 -c", python, 10)], "--pool", "0")
    one("Python, fresh cell, warm pool", "python", [("bwrap python3 -c", python, 15)], *paced)
    one("JavaScript, fresh cell, warm pool", "javascript",
        [("node -e", peers.node(), 20), ("deno run x.js", peers.deno("javascript"), 10)], *paced)
    one("TypeScript, fresh cell, warm pool", "typescript",
        [("deno run x.ts", peers.deno("typescript"), 8)], *paced)
    one("Bash, fresh cell, warm pool", "bash", [("bwrap bash -c", peers.bwrap_bash(), 1)], *paced)


def throughput():
    """
    Beside the fork of the interpreter stands what no cell can do without: a kernel that makes a
    process with these namespaces and mounts, and then forks, can do both no faster than this.
    """
    cores = os.cpu_count()
    name = "fresh Python cells a second, every core"
    options = "--pool", "0", "--parallel", str(2 * cores)
    ours = time_retort("python", HELLO["python"], 2000, *options)["per_second"]
    fork = peers.fork_loop(cores, 800)
    empty = peers.empty_cells(cores, 1500)
    both = 1 / (1 / fork + 1 / empty)
    add(name, ours, "/s", "fork, run, exit of that interpreter", fork, 0.7, ratio=ours / fork)
    add(name, ours, "/s", "that and an empty cell, one by one", both, 0, ratio=ours / both,
        detail="%.0f empty cells a second; the limit is %.2fx the forks" % (empty, both / fork))


def burst():
    answer = time_retort("python", HELLO["python"], 100, "--pool", "16", "--parallel", "100")
    add("burst of 100 Python runs", answer["p50_ms"], "ms p50", "best hosted service, published", 367,
        367 / 150, detail=spread(answer))


IDLE_CELLS, IDLE_SECONDS = 8, 15


def descends(pid, ancestor):
    while pid > 1 and pid != ancestor:
        pid = int(re.search(r"PPid:\s+(\d+)", open("/proc/%d/status" % pid).read()).group(1))
    return pid == ancestor


def pss_of_cells(comm, ancestor):
    """Kilobytes by name, of the processes in the cells of one program."""
    found = {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            name = open("/proc/%d/comm" % pid).read().strip()
            inner = open("/proc/%d/status" % pid).read().split("NSpid:")[1].split("\n")[0].split()
            if name in (comm, "retort-cell") and len(inner) >= 3 and descends(pid, ancestor):
                text = open("/proc/%d/smaps_rollup" % pid).read()
                found.setdefault(name, []).append(int(re.search(r"Pss: +(\d+)", text).group(1)))
        except (OSError, IndexError, AttributeError):
            continue  # it has ended meanwhile
    return found


def idle_memory(language, comm):
    """PSS of a cell that waits in the pool: the interpreter and the cell's first process."""
    argv = [RETORT, "run", "-l", language, "-c", HELLO[language], "--repeat", "200", "--pool",
            str(IDLE_CELLS), "--parallel", str(IDLE_CELLS), "--pause", "30s"]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        found, before, due = {}, None, time.monotonic() + IDLE_SECONDS
        while (len(found.get(comm, [])) < IDLE_CELLS or found != before) and time.monotonic() < due:
            time.sleep(1)  # those that just ran end, those in the pool rehearse: then nothing moves
            found, before = pss_of_cells(comm, process.pid), found
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
    return sum(sum(v) / len(v) / 1024 for v in found.values()), len(found.get(comm, []))


def memory():
    for language, comm, must in (("python", "python3.11", 1), ("javascript", "MainThread", 0)):
        value, count = idle_memory(language, comm)
        if count == 0:
            print("idle %s cell: none found" % language)
            continue
        add("memory of an idle %s cell (PSS)" % language, value, "MB", "a V8 isolate, published", 3.1, must,
            detail="%d cells" % count)


SUM = """
total = 0.0
count = 0
for line in %s:
    total += float(line.split(",")[1])
    count += 1
print(count, round(total, 2))
"""


def big_table(folder):
    """A file of 50 MB and a script that sums it: the path of the file, and of the script."""
    path, script = os.path.join(folder, "data.csv"), os.path.join(folder, "sum.py")
    with open(path, "w") as file:
        for i in range(1_730_000):
            file.write("row%08d,%d.25,some text\n" % (i, i % 1000))
    with open(script, "w") as file:
        file.write(SUM % ("open(%r).read().splitlines()" % path))
    return path, script


def big_input():
    with tempfile.TemporaryDirectory() as folder:
        path, script = big_table(folder)
        peer = peers.time_command([PYTHON, script], 5)
        answer = time_retort("python", SUM % "input_data.splitlines()", 5, "--input", "@" + path,
                             "--memory", "2G", "--pool", "1")
        add("%.0f MB input file summed in a cell" % (os.path.getsize(path) / 1e6), answer["p50_ms"],
            "ms p50", "the same script, unsandboxed", peer, 1 / 1.3)


BRANCHES = 30


def time_branches(name, once):
    """`once` makes a branch, ends it and says how long the first took; forks take turns with it."""
    ours, theirs = [], []
    with peers.ForkingState() as peer:
        for _ in range(BRANCHES + peers.UNMEASURED):
            ours.append(once())
            time.sleep(peers.PACE_SECONDS)  # to end a branch takes time too, which is not measured
            theirs.append(peer.time())
    found = percentiles(ours[peers.UNMEASURED:])
    add(name, found[50], "ms p50", "fork of the same process", percentiles(theirs[peers.UNMEASURED:])[50],
        0.5, detail="p95 %.2f" % found[95])


class Driver:
    """Sessions without a server: tests/live/driver.c."""

    def __enter__(self):
        self.process = subprocess.Popen([os.path.join(peers.BUILD, "live-driver"), "8"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, op, live, **more):
        self.process.stdin.write(json.dumps({"tag": 1, "op": op, "live": live, **more}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["ok"], answer
        return answer


def branch():
    with Driver() as driver:
        driver.ask("open", "a", language="python", policy={})
        outcome = driver.ask("run", "a", code=peers.STATE, language="python")["outcome"]
        assert outcome["success"], outcome

        def once():
            took = driver.ask("branch", "a", **{"as": "b"})["us"] / 1000
            driver.ask("close", "b")
            return took
        time_branches("branch of a session with 100 MB of state", once)
