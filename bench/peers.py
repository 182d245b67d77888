# SPDX-License-Identifier: Apache-2.0
"""What we are measured beside: other ways to run the same code, and the least any way could cost."""

import json
import os
import re
import socket
import struct
import subprocess
import tempfile
import time

from table import percentiles

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
BUILD = os.path.join(ROOT, "build")
RETORT = os.environ.get("RETORT", os.path.join(BUILD, "retort"))
PYTHON = "/usr/bin/python3"
NODE = os.path.realpath(os.path.join(BUILD, "guests", "node", "node"))
DENO = os.path.join(HERE, "node_modules", "@deno", "linux-x64-glibc", "deno")
BWRAP = ["/usr/bin/bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr",
         "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin",
         "/bin", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
ROUNDS = int(os.environ.get("RETORT_BENCH_ROUNDS", "60"))
PACE_SECONDS = 0.025  # between runs with a warm pool: an agent's calls do not come back to back
UNMEASURED = 3

HELLO = {"python": "print(1)", "javascript": "console.log(1)",
         "typescript": "const x: number = 1; console.log(x)", "bash": "echo 1"}


# -- other ways ------------------------------------------------------------------------------------

def time_command(argv, rounds=ROUNDS):
    """Milliseconds from start to end of a whole command, as its caller sees them: p50."""
    null = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)]
    times = []
    for _ in range(rounds + UNMEASURED):
        began = time.perf_counter()
        pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)
        _, status = os.waitpid(pid, 0)
        times.append((time.perf_counter() - began) * 1000)
        if status != 0:
            raise RuntimeError("%s ended with %d" % (argv[0], status))
    os.close(null)
    return percentiles(times[UNMEASURED:])[50]


def bwrap_python():
    return time_command([*BWRAP, PYTHON, "-c", HELLO["python"]])


def bwrap_bash():
    return time_command([*BWRAP, "/bin/bash", "-c", HELLO["bash"]])


def node():
    return time_command([NODE, "-e", HELLO["javascript"]])


def deno(language):
    """None where npm has no Deno for this machine."""
    if not os.path.exists(DENO):
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, {"javascript": "x.js", "typescript": "x.ts"}[language])
        with open(path, "w") as file:
            file.write(HELLO[language])
        return time_command([DENO, "run", path])


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


STATE = "state = bytearray(b'x') * 100_000_000"
FORK_STATE = STATE + r"""
import os, sys, time
for line in sys.stdin:
    began = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    print((time.perf_counter() - began) * 1000, flush=True)
"""


class ForkingState:
    """A process with 100 MB that forks, when asked, a child that ends at once."""

    def __enter__(self):
        self.process = subprocess.Popen([PYTHON, "-c", FORK_STATE], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def time(self):
        """Milliseconds until the child has been waited for."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


# -- the least it could cost -----------------------------------------------------------------------

def empty_cells(loops, count):
    """Cells a second with our namespaces and mounts and nothing in them."""
    argv = [os.path.join(BUILD, "empty-cells"), str(loops), str(count)]
    return float(subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout)


def node_options():
    """Those of our own zygote."""
    source = open(os.path.join(ROOT, "src/runtimes/local.c")).read()
    return re.findall(r'"(--[^"]+)"', re.search(r"node_argv\[\] = \{.*?\};", source, re.S).group(0))


class BareZygote:
    """
    The same zygote and guest with a jail that has no walls (open_jail.c): what a run takes in a
    process forked from the warmed interpreter and sealed by nothing.
    """

    ARGV = {"python": lambda: [PYTHON, "-I", "-B", "zygote.py"],
            "node": lambda: [NODE, *node_options(), "zygote.js", "60"]}

    def __init__(self, kind):
        self.orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.null = os.open(os.devnull, os.O_RDWR)
        # Number 3 is where a zygote finds its orders; `sh` puts them there.
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", 'exec "$@" 3<&%d' % theirs.fileno(), "sh", *self.ARGV[kind]()],
            cwd=os.path.join(BUILD, "open-guests", kind), pass_fds=[theirs.fileno()],
            env={"PATH": "/usr/bin:/bin", "UV_USE_IO_URING": "0", "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.DEVNULL)
        theirs.close()
        assert self.orders.recv(4096), "the zygote did not start"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.orders.close()
        os.close(self.null)
        self.process.wait()

    def fork(self, is_ahead):
        """Our ends of a new process's control socket and of its stdout."""
        control, theirs = socket.socketpair()
        out, stdout = os.pipe()
        socket.send_fds(self.orders, [b"a" if is_ahead else b"n"],
                        [self.null, stdout, self.null, theirs.fileno()])
        assert len(self.orders.recv(4)) == 4
        theirs.close()
        os.close(stdout)
        return control, out

    @staticmethod
    def run(language, control, out):
        limits = dict.fromkeys(("cpu_seconds", "data_bytes", "file_bytes", "processes", "descriptors"), 0)
        order = json.dumps({"op": "run", "id": 1, "language": language, "name": "main", "code": HELLO[language],
                            "env": {}, "limits": limits, "keep": False}).encode()
        control.sendall(struct.pack("=I", len(order)) + order)
        reply = control.recv(65536)
        while len(reply) < 4 or len(reply) < 4 + struct.unpack_from("=I", reply)[0]:
            reply += control.recv(65536)
        text = os.read(out, 100)
        assert text == b"1\n" and b'"result"' in reply, (text, reply)
        control.close()
        os.close(out)

    def time(self, language, is_ahead, rounds=ROUNDS):
        """Milliseconds, p50. `is_ahead`: forked before the clock begins, as the cells of a pool."""
        times = []
        for _ in range(rounds + UNMEASURED):
            if is_ahead:
                ready = self.fork(True)
                time.sleep(PACE_SECONDS)
            began = time.perf_counter()
            self.run(language, *(ready if is_ahead else self.fork(False)))
            times.append((time.perf_counter() - began) * 1000)
        return percentiles(times[UNMEASURED:])[50]
