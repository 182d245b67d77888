#!/usr/bin/env python3
"""Every figure beside its peer, measured in this very run: `make bench`.

Prints a table and writes bench/results.json, an array of
{name, value, unit, peer, peer_value, ratio, must, ok}. A ratio is how many times better than the
peer we are, whatever the unit; `must` is what DESIGN asks for. `ok` is null where a peer is missing.

Quiet the machine first: two cores are few, and everything here takes turns on them.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
RETORT = os.environ.get("RETORT", os.path.join(ROOT, "build", "retort"))
PYTHON = "/usr/bin/python3"
NODE = os.path.realpath(os.path.join(ROOT, "build", "guests", "node", "node"))
DENO = os.path.join(HERE, "node_modules", "@deno", "linux-x64-glibc", "deno")
BWRAP = ["/usr/bin/bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr",
         "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin",
         "/bin", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
ROUNDS = int(os.environ.get("RETORT_BENCH_ROUNDS", "60"))
rows = []


def percentiles(samples):
    samples = sorted(samples)
    return {p: samples[min(len(samples) - 1, len(samples) * p // 100)] for p in (50, 95, 99)}


def time_command(argv, rounds=ROUNDS):
    """Milliseconds from start to end of a whole command, as its caller sees them."""
    null = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)]
    times = []
    for _ in range(rounds + 3):
        began = time.perf_counter()
        pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)
        _, status = os.waitpid(pid, 0)
        times.append((time.perf_counter() - began) * 1000)
        if status != 0:
            raise RuntimeError("%s ended with %d" % (argv[0], status))
    os.close(null)
    return percentiles(times[3:])


def time_retort(language, code, repeat, *options):
    argv = [RETORT, "run", "-l", language, "-c", code, "--json", "--repeat", str(repeat), *options]
    out = subprocess.run(argv, stdout=subprocess.PIPE, check=True, stdin=subprocess.DEVNULL).stdout
    answer = json.loads(out)
    assert answer["failed"] == 0, answer
    return answer


def add(name, value, unit, peer, peer_value, must, ratio=None, detail=""):
    if ratio is None and peer_value is not None:
        ratio = peer_value / value
    ok = None if ratio is None else ratio >= must
    rows.append({"name": name, "value": round(value, 3), "unit": unit, "peer": peer,
                 "peer_value": None if peer_value is None else round(peer_value, 3),
                 "ratio": None if ratio is None else round(ratio, 2), "must": must, "ok": ok})
    mark = "-" if ok is None else "ok" if ok else "BELOW"
    print("%-46s %10.2f %-7s %-34s %10s  %7s  %6s  %s %s" % (
        name, value, unit, peer, "-" if peer_value is None else "%.2f" % peer_value,
        "-" if ratio is None else "%.1fx" % ratio, "%gx" % must, mark, detail), flush=True)


def spread(answer):
    return "p95 %.2f p99 %.2f" % (answer["p95_ms"], answer["p99_ms"])


def fresh_cells():
    python = time_command([*BWRAP, PYTHON, "-c", "print(1)"])[50]
    bash = time_command([*BWRAP, "/bin/bash", "-c", "echo 1"])[50]
    node = time_command([NODE, "-e", "console.log(1)"])[50]
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("x.js", "console.log(1)"), ("x.ts", "const x: number = 1; console.log(x)")):
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        has_deno = os.path.exists(DENO)
        deno_js = time_command([DENO, "run", folder + "/x.js"])[50] if has_deno else None
        deno_ts = time_command([DENO, "run", folder + "/x.ts"])[50] if has_deno else None

    def one(name, language, code, peers, *options):
        answer = time_retort(language, code, ROUNDS * 3, *options)
        for peer, value, must in peers:
            add(name, answer["p50_ms"], "ms p50", peer, value, must, detail=spread(answer))

    paced = ("--pool", "4", "--pause", "25ms")
    one("Python, fresh cell, no pool", "python", "print(1)", [("bwrap python3 -c", python, 10)], "--pool", "0")
    one("Python, fresh cell, warm pool", "python", "print(1)", [("bwrap python3 -c", python, 15)], *paced)
    one("JavaScript, fresh cell, warm pool", "javascript", "console.log(1)",
        [("node -e", node, 20), ("deno run x.js", deno_js, 10)], *paced)
    one("TypeScript, fresh cell, warm pool", "typescript", "const x: number = 1; console.log(x)",
        [("deno run x.ts", deno_ts, 8)], *paced)
    one("Bash, fresh cell, warm pool", "bash", "echo 1", [("bwrap bash -c", bash, 1)], *paced)


FORK_LOOP = r"""
import gc, os, sys, time
sys.path.insert(0, sys.argv[1])
import zygote_modules
for name in zygote_modules.COMMON: __import__(name)
gc.collect(); gc.freeze()
null = os.open(os.devnull, os.O_WRONLY); keep = os.dup(1); os.dup2(null, 1)
count, began = int(sys.argv[2]), time.perf_counter()
for _ in range(count):
    pid = os.fork()
    if pid == 0:
        exec(compile("print(1)", "main.py", "exec"), {}); sys.stdout.flush(); os._exit(0)
    os.waitpid(pid, 0)
os.write(keep, b"%f" % (count / (time.perf_counter() - began)))
"""


def fork_loop(processes, count):
    """Cells a second if a cell were nothing but a fork of the same warmed interpreter."""
    source = open(os.path.join(ROOT, "src/guests/python/zygote.py")).read()
    common = re.search(r'COMMON = """.*?""".split\(\)', source, re.S).group(0)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "zygote_modules.py"), "w") as file:
            file.write(common + "\n")
        argv = [PYTHON, "-B", "-c", FORK_LOOP, folder, str(count)]
        running = [subprocess.Popen(argv, stdout=subprocess.PIPE) for _ in range(processes)]
        return sum(float(p.communicate()[0]) for p in running)


def throughput():
    ours = time_retort("python", "print(1)", 2000, "--pool", "0", "--parallel", "4")["per_second"]
    peer = fork_loop(2, 800)
    add("fresh Python cells a second, both cores", ours, "/s", "fork, run, exit of that interpreter", peer,
        0.7, ratio=ours / peer)


def burst():
    answer = time_retort("python", "print(1)", 100, "--pool", "16", "--parallel", "100")
    add("burst of 100 Python runs", answer["p50_ms"], "ms p50", "best hosted service, published", 367,
        367 / 150, detail=spread(answer))


def idle_memory(language, comm):
    """PSS of a cell that waits in the pool: the interpreter and the cell's first process."""
    code = {"python": "print(1)", "javascript": "console.log(1)"}[language]
    argv = [RETORT, "run", "-l", language, "-c", code, "--repeat", "200", "--pool", "8", "--parallel", "8",
            "--pause", "4s"]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(3)
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                name = open("/proc/%s/comm" % pid).read().strip()
                inner = open("/proc/%s/status" % pid).read().split("NSpid:")[1].split("\n")[0].split()
                if name in (comm, "retort-cell") and len(inner) >= 3:
                    text = open("/proc/%s/smaps_rollup" % pid).read()
                    found.setdefault(name, []).append(int(re.search(r"Pss: +(\d+)", text).group(1)))
            except (OSError, IndexError):
                continue
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
    parts = [sum(v) / len(v) / 1024 for v in found.values()]
    return sum(parts), len(found.get(comm, []))


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


def big_input():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "data.csv")
        with open(path, "w") as file:
            for i in range(1_900_000):
                file.write("row%08d,%d.25,some text\n" % (i, i % 1000))
        size = os.path.getsize(path) / 1e6
        script = os.path.join(folder, "sum.py")
        with open(script, "w") as file:
            file.write(SUM % ("open(%r).read().splitlines()" % path))
        peer = time_command([PYTHON, script], 5)[50]
        argv = [RETORT, "run", "-l", "python", "-c", SUM % "input_data.splitlines()", "--input", "@" + path,
                "--memory", "2G", "--json", "--repeat", "5", "--pool", "1"]
        answer = json.loads(subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout)
        assert answer["failed"] == 0
        add("%.0f MB input file summed in a cell" % size, answer["p50_ms"], "ms p50",
            "the same script, unsandboxed", peer, 1 / 1.3)


def json_speed():
    binary = os.path.join(ROOT, "build", "json-bench")
    if not os.path.exists(binary):
        return
    out = subprocess.run([binary], stdout=subprocess.PIPE, text=True).stdout
    found = re.search(r"retort (\d+) MB/s, cJSON (\d+) MB/s", out)
    if found:
        ours, peer = float(found.group(1)), float(found.group(2))
        add("JSON parsed, 2.4 MB of commits", ours, "MB/s", "cJSON", peer, 500 / 285, ratio=ours / peer)


def schema_speed():
    """JSON Schema beside ajv's compiled code: all documents of a case, parsed before."""
    ours, cases = os.path.join(ROOT, "build", "schema-bench-ours"), os.path.join(ROOT, "build", "schema-bench")
    if not os.path.exists(ours):
        return
    scripts = os.path.join(HERE, "schema")
    subprocess.run([NODE, os.path.join(scripts, "cases.mjs"), cases], check=True)
    files = sorted(os.path.join(cases, name) for name in os.listdir(cases))

    def measured(argv):
        out = subprocess.run(argv + files, stdout=subprocess.PIPE, text=True, check=True).stdout
        return {row["name"]: row for row in map(json.loads, out.splitlines())}

    mine, theirs = measured([ours]), measured([NODE, os.path.join(scripts, "ajv.mjs")])
    for name, row in mine.items():
        peer = theirs[name]
        add("schema %s: %d KB checked" % (name, row["bytes"] // 1024), row["validate_us"], "us", "ajv, compiled",
            peer["validate_us"], 3)
        add("schema %s: compiled" % name, row["compile_us"], "us", "ajv", peer["compile_us"], 20)


def main():
    print("%-46s %10s %-7s %-34s %10s  %7s  %6s" % ("what", "value", "", "peer", "peer's", "ratio", "must"))
    for part in (fresh_cells, throughput, burst, memory, big_input, json_speed, schema_speed):
        if len(sys.argv) > 1 and part.__name__ not in sys.argv[1:]:
            continue
        part()
    with open(os.path.join(HERE, "results.json"), "w") as file:
        json.dump(rows, file, indent=1)
        file.write("\n")


main()
