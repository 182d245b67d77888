# SPDX-License-Identifier: Apache-2.0
"""Signals, bombs and processes that would rather outlive their run."""

import os
import signal
import subprocess
import time

import pytest


# ---- signals ----

def test_killing_everything_hits_only_the_cell(run):
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        answer = run("python", """
import os, signal, subprocess
child = subprocess.Popen(["sleep", "50"])
os.kill(-1, signal.SIGKILL)
return child.wait()""")
        assert answer["result"] == -9
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.parametrize("number", [9, 15, 19, 11, 1])
def test_the_first_process_of_a_cell_cannot_be_signalled_away(run, number):
    answer = run("python", f"""
import os, time
try:
    os.kill(1, {number})
except OSError as e:
    return e.errno
time.sleep(0.1)
os.listdir('/proc')
try:
    os.chroot('/')                 # answered by the first process: it still answers
except PermissionError:
    return "alive" """)
    assert answer["result"] in (1, 3, "alive")


def test_host_process_ids_mean_nothing_inside(attack):
    outcomes, _ = attack(f"""
attempt("signal", lambda: os.kill({os.getpid()}, 0))
attempt("pidfd", lambda: os.pidfd_open({os.getpid()}))
attempt("limit", lambda: __import__('resource').prlimit({os.getpid()}, 7))
attempt("affinity", lambda: os.sched_getaffinity({os.getpid()}))
attempt("group", lambda: os.killpg({os.getpgid(0)}, 0))""")
    assert set(outcomes.values()) == {"ESRCH"}


@pytest.mark.parametrize("code", [
    "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "import os\nos.abort()",
    "import ctypes\nctypes.string_at(0)",
    "import os\nos._exit(3)",
    "import os, signal\nfor s in range(1, 32):\n  try: signal.signal(s, signal.SIG_IGN)\n  except OSError: pass\n"
    "os.killpg(0, 15)\nos._exit(4)",
])
def test_a_guest_that_ends_itself_is_answered_for(run, code):
    answer = run("python", code)
    assert answer["status"] == "FAILED" and answer["error"]["type"] == "RuntimeError"
    assert answer["exit_status"] == answer["exit_code"] > 0 and answer["seconds"] < 10


@pytest.mark.parametrize("language, code", [
    ("python", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"),
    ("javascript", "process.kill(process.pid, 'SIGSTOP')"),
    ("bash", "kill -STOP $$"),
    ("bash", "trap '' TERM INT HUP QUIT XCPU; while :; do :; done"),
    ("python", "import signal\nfor s in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:\n"
               "    signal.signal(s, lambda *_: None)\nwhile True: pass"),
    ("javascript", "for (;;);"),
    ("javascript", "await new Promise(() => setInterval(() => {}, 1000))"),
    ("typescript", "const n: number = 1; while (n) {}"),
])
def test_the_time_limit_holds_whatever_the_code_does_with_signals(run, language, code):
    answer = run(language, code, timeout="500ms", wait=15)
    assert answer["status"] == "TIMEOUT" and answer["exit_status"] == 124
    assert answer["error"]["type"] == "TimeoutError" and answer["error"]["limit"] == "timeout"
    assert "500ms" in answer["error"]["message"] and "--timeout" in answer["error"]["hint"]
    assert answer["metrics"]["executionTimeMs"] - answer["metrics"]["startMs"] < 1500


def test_closing_every_descriptor_is_answered(run):
    answer = run("python", "import os\nos.closerange(0, 100)\nreturn 1", timeout="3s", wait=15)
    assert answer["status"] in ("FAILED", "SUCCESS")


@pytest.mark.parametrize("language, code, result", [
    ("python", "import os\nos.close(1); os.close(2)\nreturn 5", 5),
    ("javascript", "require('fs').closeSync(1); require('fs').closeSync(2); return 5", 5),
    ("bash", "RESULT=5; exec 1>&- 2>&-", 5),
])
def test_closed_output_does_not_lose_the_answer(run, language, code, result):
    answer = run(language, code)
    assert answer["success"] and answer["result"] == result


# ---- outliving ----

OUTLIVE = {
    "python": """
import os, subprocess, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        import signal
        for s in (1, 2, 3, 15): signal.signal(s, signal.SIG_IGN)
        os.execv("/usr/bin/sleep", ["sleep", "98765.1"])
    os._exit(0)
time.sleep(0.1)
return 1""",
    "javascript": """
require('child_process').spawn('/usr/bin/setsid', ['-f', '/usr/bin/sleep', '98765.1'],
    {detached: true, stdio: 'ignore'}).unref();
await new Promise(r => setTimeout(r, 100));
return 1""",
    "bash": "(setsid -f sleep 98765.1 >/dev/null 2>&1 </dev/null &) ; nohup sleep 98765.1 >/dev/null 2>&1 & sleep 0.1; RESULT=1",
}


@pytest.mark.parametrize("language", OUTLIVE)
def test_nothing_outlives_its_run(run, left_on_host, language):
    answer = run(language, OUTLIVE[language])
    assert answer["result"] == 1
    assert left_on_host("98765.1") == {}


def test_nothing_outlives_a_run_that_timed_out(run, left_on_host):
    answer = run("bash", "setsid -f sleep 98765.2; sleep 98765.2 & sleep 98765.2", timeout="400ms")
    assert answer["status"] == "TIMEOUT" and answer["seconds"] < 5
    assert left_on_host("98765.2") == {}


def test_nothing_outlives_a_caller_that_is_killed(program, left_on_host):
    caller = subprocess.Popen([program, "run", "-l", "bash", "-c", "sleep 98765.3 & sleep 98765.3"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 10
    while not left_on_host("sleep 98765.3", within=0) and time.monotonic() < deadline:
        time.sleep(0.05)
    caller.send_signal(signal.SIGKILL)
    caller.wait()
    assert left_on_host("98765.3") == {}


def test_a_background_process_does_not_delay_the_answer(run):
    answer = run("python", "import subprocess\nsubprocess.Popen(['sleep', '20'])\nreturn 1")
    assert answer["result"] == 1 and answer["seconds"] < 5


# ---- bombs ----

@pytest.mark.parametrize("language, code", [
    ("python", """
import os
made = 0
try:
    while True:
        if os.fork() == 0:
            import time; time.sleep(60)
        made += 1
except BlockingIOError:
    return made"""),
    ("python", """
import threading, time
made = 0
try:
    while True:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        made += 1
except RuntimeError:
    return made"""),
])
def test_a_bomb_of_processes_or_threads_meets_its_limit(run, language, code):
    answer = run(language, code, processes=20, timeout="10s")
    assert answer["success"], answer["error"]
    assert 10 <= answer["result"] <= 20


def test_a_fork_bomb_of_bash_ends_with_its_run(run, left_on_host):
    answer = run("bash", "bomb() { bomb | bomb & sleep 98765.4; }; bomb; wait", processes=30, timeout="2s")
    assert answer["status"] in ("FAILED", "TIMEOUT", "SUCCESS") and answer["seconds"] < 8
    assert left_on_host("98765.4") == {}


def test_too_many_processes_are_named_as_the_limit(run):
    answer = run("python", "import os, time\nwhile True:\n    if os.fork() == 0: time.sleep(60)", processes=10)
    assert answer["error"]["type"] == "ResourceLimitError" and answer["error"]["limit"] == "processes"
    assert "--processes" in answer["error"]["hint"]


@pytest.mark.parametrize("language, code", [("python", "return 1"), ("javascript", "return 1"), ("bash", "RESULT=1")])
def test_one_process_is_enough_for_plain_code(run, language, code):
    answer = run(language, code, processes=1)
    assert answer["result"] == 1 or answer["error"]["type"] == "ResourceLimitError"


@pytest.mark.parametrize("language, code", [
    ("python", "import subprocess\nsubprocess.run(['true'])"),
    ("python", "import os\nos.fork()"),
    ("javascript", "require('child_process').execFileSync('/usr/bin/true')"),
])
def test_subprocess_deny_means_no_process_and_says_so(run, language, code):
    answer = run(language, code, subprocess="deny")
    assert not answer["success"] and answer["error"]["type"] == "PermissionError"
    assert any(d["rule"] == "subprocess: deny" and "subprocess" in d["allow"] for d in answer["denials"])


def test_subprocess_deny_still_lets_threads_run(run):
    answer = run("python", """
import threading
got = []
t = threading.Thread(target=got.append, args=(1,)); t.start(); t.join()
return got""", subprocess="deny")
    assert answer["result"] == [1]


# ---- cpu ----

def test_the_cpu_limit_ends_a_loop(run):
    answer = run("python", "while True: pass", cpu="1s", timeout="10s")
    assert answer["status"] == "TIMEOUT" and answer["error"]["limit"] == "cpu" and answer["exit_status"] == 124
    assert 900 <= answer["metrics"]["cpuMs"] <= 2000


def test_the_cpu_limit_cannot_be_ignored_and_is_named(run):
    answer = run("python", "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass",
                 cpu="1s", timeout="10s")
    assert answer["seconds"] < 5
    assert answer["error"]["limit"] == "cpu" and answer["status"] == "TIMEOUT" and answer["exit_status"] == 124


def test_the_cpu_limit_of_a_bash_loop_is_named(run):
    answer = run("bash", "while :; do :; done", cpu="1s", timeout="10s")
    assert answer["error"]["limit"] == "cpu" and answer["exit_status"] == 124


def test_a_cpu_limit_below_a_second_is_kept(run):
    answer = run("python", "while True: pass", cpu="200ms", timeout="10s")
    assert answer["error"]["limit"] == "cpu"
    assert answer["metrics"]["cpuMs"] < 600
