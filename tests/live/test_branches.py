# SPDX-License-Identifier: Apache-2.0
"""A branch has everything its source had, shares nothing with it from then on, and can leave no more than it."""

import os
import pathlib
import subprocess
import time

import pytest

from .conftest import DRIVER, House, Refused

MB = 1 << 20


def test_a_branch_has_variables_imports_functions_and_files(a):
    a.run("import math, os\nx = {'deep': [1, 2]}\ndef f(): return x['deep'][-1]\nos.makedirs('d/e')\n"
          "open('d/e/f', 'w').write('text'); os.chmod('d/e/f', 0o640); os.symlink('d/e/f', 'link'); os.mkfifo('pipe')\n"
          "open('/tmp/t', 'w').write('tmp'); os.chdir('d')")
    b = a.branch()
    assert b.value("return [f(), math.floor(2.5), open('e/f').read(), os.readlink('/work/link'), open('/tmp/t').read(), os.getcwd()]"
                   ) == [2, 2, "text", "d/e/f", "tmp", "/work/d"]
    assert b.value("s = os.stat('e/f'); return [s.st_uid, s.st_gid, s.st_mode & 0o777]") == [1000, 1000, 0o640]
    assert b.value("open('e/f', 'a').write('!'); import stat; return stat.S_ISFIFO(os.stat('/work/pipe').st_mode)") is True
    b.close()


def test_from_then_on_neither_sees_what_the_other_does(a):
    a.run("x = [1]\nopen('f', 'w').write('both')")
    b = a.branch()
    a.run("x.append('a'); open('f', 'w').write('a'); open('only-a', 'w')")
    b.run("x.append('b'); open('f', 'w').write('b'); open('only-b', 'w')")
    look = "import os; return [x, open('f').read(), sorted(n for n in os.listdir('.') if n.startswith('only'))]"
    assert a.value(look) == [[1, "a"], "a", ["only-a"]]
    assert b.value(look) == [[1, "b"], "b", ["only-b"]]
    b.write("from-outside", "1")
    assert "from-outside" in b.names() and "from-outside" not in a.names()
    b.close()


def test_a_branch_can_be_branched_and_outlives_its_source(house):
    a = house.open()
    a.run("x = ['a']; open('f', 'w').write('kept')")
    b = a.branch()
    b.run("x.append('b')")
    c = b.branch()
    a.close()
    assert c.value("x + [open('f').read()]") == ["a", "b", "kept"]
    b.close()
    assert c.value("x") == ["a", "b"] and c.is_alive()
    d = c.branch()
    c.close()
    assert d.value("x") == ["a", "b"]
    d.close()


def test_closing_a_branch_leaves_its_source(a):
    a.run("x = 1")
    for _ in range(5):
        b = a.branch()
        assert b.value("x") == 1
        b.close()
    assert a.value("x") == 1


def test_the_death_of_one_is_not_the_death_of_the_other(a):
    a.run("x = 1")
    b, c = a.branch(), a.branch()
    assert "the session has ended" in b.run("import os; os._exit(1)")["error"]["message"]
    assert c.value("x") == 1 and a.value("x") == 1
    b.close()
    c.close()


def test_memory_is_shared_until_it_is_written(a):
    a.run(f"x = bytearray(b'x' * {100 * MB})")
    b = a.branch()
    read = "return {k: int(v.split()[0]) for k, v in (l.split(':', 1) for l in open('/proc/self/smaps_rollup').read().splitlines()[1:])}"
    before = b.value(read)
    assert before["Rss"] > 100 << 10 and before["Private_Dirty"] + before["Private_Clean"] < 20 << 10
    outcome = b.run(f"for i in range(0, {50 * MB}, 4096): x[i] = 0")
    assert outcome["metrics"]["memoryPeakBytes"] > 40 * MB or outcome["attestation"]["memory"]["by"] == "watcher and rlimits"
    assert 45 << 10 < b.value(read)["Private_Dirty"] < 80 << 10
    assert a.value("return x[0]") == ord("x")
    b.close()


def test_a_branch_has_its_own_limits(house):
    a = house.open(memory="128M", processes="8")
    small = {"memory": "128M", "processes": "8"}
    a.run(f"x = bytearray({60 * MB})", policy=small)
    b = a.branch()
    assert b.run(f"y = b'y' * {300 * MB}", policy=small)["status"] == "MEMORY_ERROR"
    outcome = b.run("import os, time\nfor _ in range(20):\n    if os.fork() == 0:\n        time.sleep(1); os._exit(0)", policy=small)
    assert outcome["error"]["type"] in ("ResourceLimitError", "RuntimeError", "MemoryError")
    assert a.value("return len(x)", policy=small) == 60 * MB
    for one in (a, b):
        one.close()


def test_random_numbers_are_not_the_same_in_two_branches(a):
    a.run("import random, uuid, secrets, os, ctypes\nrandom.seed(1)\nlibc = ctypes.CDLL(None)")
    draw = "return [random.random(), uuid.uuid4().hex, secrets.token_hex(), libc.rand(), os.urandom(8).hex()]"
    drawn = []
    for _ in range(3):
        b = a.branch()
        drawn.append(b.value(draw))
        b.close()
    drawn.append(a.value(draw))
    for values in zip(*drawn):
        assert len(set(values)) == 4, values


def test_an_event_loop_that_is_idle_goes_along(a):
    a.run("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 7\nawait f()")
    b = a.branch()
    for one in (a, b, a, b):
        assert one.value("await asyncio.wait_for(f(), 1)") == 7
    b.close()


def test_handlers_of_signals_go_along(a):
    a.run("import signal, os\ngot = []\nsignal.signal(signal.SIGUSR1, lambda *_: got.append(1))")
    b = a.branch()
    assert b.value("os.kill(os.getpid(), signal.SIGUSR1); return got") == [1]
    assert a.value("return got") == []
    assert b.run("while True: pass", policy={"timeout": "100ms"})["status"] == "TIMEOUT" and b.is_alive()
    b.close()


@pytest.mark.parametrize("code, words", [
    ("import threading, time\nt = threading.Thread(target=time.sleep, args=(60,), name='counter', daemon=True); t.start()",
     "the thread 'counter'"),
    ("import socket\ns = socket.socketpair()", "an open socket"),
    ("import os\np = os.pipe()", "an open pipe"),
    ("f = open('data', 'w')", "the open file /work/data"),
    ("import subprocess\np = subprocess.Popen(['sleep', '60'])", "the process 'sleep'"),
    ("import mmap\nm = mmap.mmap(-1, 4096)", "shared memory"),
    ("import concurrent.futures, time\ne = concurrent.futures.ThreadPoolExecutor(1); e.submit(int).result()", "the thread 'ThreadPool"),
])
def test_what_cannot_be_copied_is_named(house, code, words):
    a = house.open()
    assert a.run(code)["success"]
    with pytest.raises(Refused) as caught:
        a.branch()
    assert caught.value.code == "conflict" and words in caught.value.message, caught.value
    assert a.value("return 1") == 1, "the source is none the worse for it"
    a.close()


def test_once_it_is_gone_the_branch_can_be_made(a):
    a.run("import subprocess, threading\nf = open('data', 'w')\np = subprocess.Popen(['sleep', '60'])")
    with pytest.raises(Refused, match="the process 'sleep', the open file /work/data"):
        a.branch()
    a.run("f.close(); p.kill(); p.wait()")
    b = a.branch()
    assert b.value("return 1") == 1
    b.close()


def test_no_branch_while_a_run_is_under_way(a):
    run = a.start("import time; time.sleep(0.5)")
    time.sleep(0.1)
    with pytest.raises(Refused, match="conflict: .*a run is under way"):
        a.branch()
    run()
    a.branch().close()


def test_bash_keeps_no_interpreter_to_branch(house):
    a = house.open("bash")
    with pytest.raises(Refused, match="unsupported"):
        a.branch()
    a.close()


def test_branches_count_as_sessions():
    house = House(cells=4)
    a = house.open()
    b, c = a.branch(), a.branch()
    with pytest.raises(Refused, match="too_many: branch the session: 3 of 4 cells are taken"):
        a.branch()
    assert a.value("return 1") == 1
    for _ in range(8):  # what was closed is free again, whoever else of the family lives
        c.close()
        c = b.branch()
    b.close()
    with pytest.raises(Refused, match="too_many"):  # but for a source whose branch still shares its memory
        a.branch()
    c.close()
    d = a.branch()
    for one in (a, d):
        one.close()
    for _ in range(3):
        house.open().branch().close()
        house.ask(op="close", live=f"s{next(house.names) - 2}")()
    assert house.end() == 0


# ---- the walls ----

STATUS = "return dict(line.split(':\\t', 1) for line in open('/proc/self/status').read().splitlines())"


def test_a_branch_is_sealed_like_any_cell(a):
    b = a.branch()
    theirs, ours = b.value(STATUS), a.value(STATUS)
    for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "Seccomp", "Seccomp_filters", "NoNewPrivs", "TracerPid",
                "Uid", "Gid", "Groups", "NSpid", "SigBlk", "Cpus_allowed"):
        assert theirs[key] == ours[key], key
    assert theirs["CapBnd"] == "0" * 16 and theirs["Seccomp"] == "2" and theirs["NoNewPrivs"] == "1"
    limits = "import resource; return [resource.getrlimit(i) for i in range(16)]"
    assert b.value(limits) == a.value(limits)
    said = [one.run("1")["attestation"] for one in (a, b)]
    for key in ("capabilities", "seccomp", "no_new_privs", "landlock", "memory", "processes", "scratch_bytes", "namespaces"):
        assert said[0][key] == said[1][key], key
    if said[0]["ids"]["own_range"]:
        assert said[0]["ids"]["host_uid"] != said[1]["ids"]["host_uid"]
    b.close()


def test_a_branch_lives_in_namespaces_of_its_own(a):
    spaces = "import os; return {n: os.readlink('/proc/self/ns/' + n) for n in ('user', 'pid', 'mnt', 'ipc', 'uts', 'cgroup')}"
    b = a.branch()
    ours, theirs = a.value(spaces), b.value(spaces)
    assert all(ours[name] != theirs[name] for name in ours)
    b.close()


def test_they_cannot_see_signal_or_trace_each_other(a):
    b = a.branch()
    probe = """
import os, errno
def reach(pid):
    try:
        os.kill(pid, 0)
        return 'reached'
    except OSError as why:
        return errno.errorcode[why.errno]
return [[n for n in os.listdir('/proc') if n.isdigit()], os.getpid(), sorted({reach(pid) for pid in range(3, 5000)}),
        os.getppid()]
"""
    for one in (a, b):
        assert one.value(probe) == [["2"], 2, ["ESRCH"], 0]
    b.close()


def test_refused_calls_stay_refused_and_are_told_to_the_right_session(a):
    attack = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def attempt(*call):
    ctypes.set_errno(0)
    return libc.syscall(*call), ctypes.get_errno()
pidfd = os.pidfd_open(1)
return {name: attempt(*call) for name, call in {
    'unshare': (272, 0x10000000), 'setns': (308, pidfd, 0x20000000), 'mount': (165, 0, 0, 0, 0, 0), 'ptrace': (101, 16, 1, 0, 0),
    'clone_parent': (56, 0x8000 | 17, 0, 0, 0, 0), 'pidfd_getfd': (438, pidfd, 0, 0), 'setuid': (105, 0)}.items()}
"""
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers of the calls are x86-64's")
    b = a.branch()
    outcome = b.run(attack)
    assert outcome["success"], outcome["error"]
    assert all(result == [-1, 1] or name == "setuid" and result[0] == -1 for name, result in outcome["result"].items()), outcome["result"]
    rules = {denial["rule"] for denial in outcome["denials"]}
    assert {"namespaces: never", "mounts: never", "debugging: never"} <= rules
    assert a.run("1")["denials"] == []
    b.close()


HOSTILE = """
import ctypes, json, os, struct, threading
libc = ctypes.CDLL(None)
def frame(**message):
    text = json.dumps(message).encode()
    os.write(3, struct.pack('I', len(text)) + text)
# where the twin, stopped for ever, would go on: the instruction of syscall()
address = ctypes.cast(libc.syscall, ctypes.c_void_p).value
code = ctypes.string_at(address, 64)
at = address + code.index(b'\\x0f\\x05')
page = at & ~4095
assert libc.mprotect(ctypes.c_void_p(page), 8192, 7) == 0
ctypes.memmove(at, %r, 2)
frame(op='result', id=1)
os.read(3, 4); os.read(3, 100)
frame(op='ready', id=0)
class Poll(ctypes.Structure):
    _fields_ = [('fd', ctypes.c_int), ('events', ctypes.c_short), ('revents', ctypes.c_short)]
while True:
    libc.ppoll(ctypes.byref(Poll(99999, 1, 0)), 0, None, None)
"""


@pytest.mark.parametrize("instruction", [b"\xcc\xcc", b"\xcd\x80", b"\x0f\x0b"], ids=["trap", "32-bit call", "undefined"])
def test_code_that_rewrites_itself_gains_nothing(house, instruction):
    """The twin has rights that the code has not, and the code can write its memory: it must not get to use them."""
    if os.uname().machine != "x86_64":
        pytest.skip("writes machine code of x86-64")
    a = house.open()
    assert a.run(HOSTILE % instruction)["success"]
    with pytest.raises(Refused) as caught:
        a.branch()
    assert "tampered" in caught.value.message or "ended" in caught.value.message, caught.value
    a.close()
    fresh = house.open()
    assert fresh.branch().value("return 1") == 1, "and nobody else is the worse for it"


NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "-i", "PATH=/usr/bin:/bin", "HOME=/nonexistent")


def test_an_ordinary_user_has_the_same_walls():
    """Without ids of its own to give away, a cell and its branch are the same user on the host: only namespaces part them."""
    if os.geteuid() != 0 or subprocess.run([*NOBODY, "test", "-x", DRIVER]).returncode != 0:
        pytest.skip("becomes nobody with setpriv: needs root, and a program that others can reach")
    house = House(prefix=NOBODY)
    a = house.open()
    a.run("x = [1]; open('f', 'w').write('a')")
    b = a.branch()
    b.run("x.append(2); open('f', 'w').write('b')")
    assert (a.value("x + [open('f').read()]"), b.value("x + [open('f').read()]")) == ([1, "a"], [1, 2, "b"])
    see = "import os; return [[n for n in os.listdir('/proc') if n.isdigit()], os.readlink('/proc/self/ns/pid')]"
    ours, theirs = a.value(see), b.value(see)
    assert ours[0] == theirs[0] == ["2"] and ours[1] != theirs[1]
    assert b.value(STATUS)["CapBnd"] == "0" * 16
    a.close()
    assert b.value("x") == [1, 2]
    assert house.end() == 0


# ---- litter ----

def tree_below(root):
    found, children = set(), {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = pathlib.Path("/proc", entry, "stat").read_text(errors="replace")
            except OSError:
                continue
            children.setdefault(int(text[text.rindex(")") + 2:].split()[1]), []).append(int(entry))
    todo = [root]
    while todo:
        pid = todo.pop()
        found.add(pid)
        todo += children.get(pid, [])
    return found


def those_left(pids, seconds=5):
    deadline = time.monotonic() + seconds
    while (left := {pid for pid in pids if os.path.exists(f"/proc/{pid}")}) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def cgroups_of(pids):
    return {os.path.join(folder, name) for folder, names, _ in os.walk("/sys/fs/cgroup") for name in names
            if name.startswith("retort-") and int(name.rsplit("-", 1)[1]) in pids}


def test_kill_9_of_everything_leaves_nothing():
    house = House()
    a = house.open()
    a.run("x = 1")
    b = a.branch()
    b.branch()
    run = b.start("import time; time.sleep(60)")
    time.sleep(0.1)
    family = tree_below(house.process.pid)
    assert len(family) > 8
    house.process.kill()
    house.process.wait()
    assert those_left(family) == set()
    deadline = time.monotonic() + 3
    while cgroups_of(family) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert cgroups_of(family) == set()
    with pytest.raises(AssertionError, match="the driver has ended"):
        run()


def comm_of(pid):
    try:
        return pathlib.Path("/proc", str(pid), "comm").read_text().strip()
    except OSError:
        return ""


def test_the_death_of_the_midwife_ends_no_session():
    house = House()
    a = house.open()
    a.run("x = 1")
    b = a.branch()
    midwife = [pid for pid in tree_below(house.process.pid) if comm_of(pid) == "retort-midwife"]
    os.kill(midwife[0], 9)
    assert those_left(midwife) == set()
    assert a.value("x") == b.value("x") == 1
    with pytest.raises(Refused, match="conflict: .*cannot be branched again"):
        a.branch()
    c = house.open()
    c.run("y = 2")
    assert c.branch().value("y") == 2, "there is another"
    assert house.end() == 0


def test_closing_leaves_no_process_of_a_session():
    house = House()
    house.ask(op="run", code="return 1", language="python")()
    house.open().branch().close()
    before = len(tree_below(house.process.pid))
    for _ in range(5):
        a = house.open()
        b = a.branch()
        c = b.branch()
        for one in (a, b, c):
            one.close()
    deadline = time.monotonic() + 5
    while (left := len(tree_below(house.process.pid))) > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left <= before
    assert house.end() == 0
