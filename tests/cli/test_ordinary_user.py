# SPDX-License-Identifier: Apache-2.0
"""The same promises for somebody who is not root: cells run, or doctor says exactly what is missing."""

import json
import os
import subprocess
import shutil

import pytest

if os.geteuid() != 0 or not shutil.which("setpriv"):
    pytest.skip("becomes nobody with setpriv: needs root", allow_module_level=True)
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "-i", "PATH=/usr/bin:/bin", "HOME=/nonexistent")


@pytest.fixture(scope="module")
def nobody(retort, program):
    if subprocess.run([*NOBODY, "test", "-x", program]).returncode != 0:
        pytest.skip("the program cannot be reached by others")
    doctor = retort("doctor", prefix=NOBODY)
    if doctor.status == 3:
        assert "MISSING" in doctor.stdout and "->" in doctor.stdout, doctor.stdout
        pytest.skip("cells cannot run for an ordinary user here: " + doctor.stdout)
    return NOBODY


def test_doctor_explains_every_substitute(retort):
    done = retort("doctor", prefix=NOBODY)
    lines = done.stdout.splitlines()
    assert done.status in (0, 3)
    for line, following in zip(lines, lines[1:] + [""]):
        if line.startswith(("partly", "MISSING")):
            assert "->" in following, line


@pytest.mark.parametrize("language, code", [("python", "return 42"), ("javascript", "return 42"), ("typescript", "return 42 as number"), ("bash", "RESULT=42"),
                                            ("perl", "print 42"), ("c", '#include <stdio.h>\nint main(void) { puts("42"); }')])
def test_every_language_runs(run, nobody, language, code):
    answer = run(language, code, prefix=nobody)
    assert answer["result"] == 42, answer["error"]


def test_sql_runs(run, nobody):
    assert run("sql", "SELECT sum(value) AS a FROM input", input=[40, 2], prefix=nobody)["result"] == [{"a": 42}]


def test_the_attestation_is_honest(run, nobody):
    answer = run("python", "return 1", prefix=nobody)
    layers = answer["attestation"]
    assert layers["capabilities"] == "none" and layers["seccomp"] == "filter" and layers["no_new_privs"] is True
    if not os.access("/sys/fs/cgroup/memory", os.W_OK):
        assert layers["memory"]["by"] != "cgroup v1"
    assert layers["ids"]["own_range"] is False or layers["ids"]["host_uid"] != 65534


@pytest.mark.parametrize("language, code", [
    ("python", "x = []\nwhile True: x.append(bytearray(1 << 20))"),
    ("javascript", "const x = []; for (;;) x.push(Buffer.alloc(1 << 20, 1))"),
    ("bash", "for i in 1 2 3 4 5 6; do python3 -c 'x = bytearray(40 << 20); x[::4096] = b\"1\" * len(x[::4096]); import time; time.sleep(20)' & done; wait -n; exit $?"),
    ("python", "f = open('/dev/shm/x', 'wb')\nwhile True: f.write(b'x' * (1 << 20)); f.flush()"),
])
def test_the_memory_limit_holds(run, nobody, language, code):
    answer = run(language, code, memory="128M", scratch="1G", timeout="15s", prefix=nobody, wait=40)
    assert not answer["success"] and answer["status"] == "MEMORY_ERROR", answer["error"]
    assert answer["exit_status"] == 137


@pytest.mark.parametrize("code", [
    "import os, time\nmade = 0\ntry:\n    while True:\n        if os.fork() == 0: time.sleep(60)\n        made += 1\nexcept BlockingIOError:\n    return made",
    "import threading, time\nmade = 0\ntry:\n    while True:\n        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n        made += 1\nexcept RuntimeError:\n    return made",
])
def test_the_process_limit_holds(run, nobody, code):
    answer = run("python", code, processes=20, timeout="10s", prefix=nobody)
    assert answer["success"] and answer["result"] <= 20


def test_the_time_limit_holds(run, nobody, left_on_host):
    answer = run("bash", "setsid -f sleep 98765.9; sleep 98765.9", timeout="400ms", prefix=nobody)
    assert answer["status"] == "TIMEOUT" and left_on_host("98765.9") == {}


ATTACKS = """
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
outcomes = {}
def attempt(name, attack):
    try: outcomes[name] = "succeeded: " + repr(attack())[:100]
    except OSError as e: outcomes[name] = errno.errorcode.get(e.errno, str(e.errno))
def syscall(*args):
    if libc.syscall(*args) < 0: raise OSError(ctypes.get_errno(), "")
attempt("the first process's memory", lambda: open('/proc/1/mem', 'rb').read(1))
attempt("the first process's descriptors", lambda: os.listdir('/proc/1/fd'))
attempt("the first process's root", lambda: os.listdir('/proc/1/root'))
attempt("the first process's environment", lambda: open('/proc/1/environ').read())
attempt("trace", lambda: syscall(101, 16, 1, 0, 0))
attempt("mount", lambda: syscall(165, b'x', b'/work', b'tmpfs', 0, 0))
attempt("unshare", lambda: syscall(272, 0x10000000))
attempt("host's files", lambda: open('/etc/shadow').read())
attempt("write /usr", lambda: open('/usr/x', 'w'))
attempt("connect", lambda: socket.create_connection(('127.0.0.1', 9), 1))
attempt("become root", lambda: os.setuid(0))
for target in (-1, 1):
    try:
        os.kill(target, 9)
    except OSError:
        pass
import time; time.sleep(0.2)
attempt("and the first process still answers", lambda: os.chroot('/'))
return outcomes
"""


@pytest.fixture(scope="module")
def outcomes(run, nobody):
    answer = run("python", ATTACKS, prefix=nobody)
    assert answer["success"], answer["error"]
    return answer["result"]


@pytest.mark.parametrize("name", ["the first process's memory", "the first process's descriptors", "the first process's root",
                                  "the first process's environment", "trace", "mount", "unshare", "host's files", "write /usr", "connect",
                                  "become root", "and the first process still answers"])
def test_an_attack_fails(outcomes, name):
    assert outcomes[name] in ("EPERM", "EACCES", "ENOENT", "EROFS", "EINVAL")  # EINVAL: there is no such id here


def test_strict_isolation_is_refused_with_its_reason(retort, nobody):
    done = retort("run", "-l", "bash", "-c", "echo ok", "--isolation", "strict", prefix=nobody)
    assert done.status == 0 or "isolation strict" in done.stderr


def test_artifacts_come_back(run, nobody):
    answer = run("bash", "echo x > out/f; ln -s /etc/passwd out/l", prefix=nobody)
    assert [a["name"] for a in answer["artifacts"]] == ["f"]
