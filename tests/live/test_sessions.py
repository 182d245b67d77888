# SPDX-License-Identifier: Apache-2.0
"""What a session keeps from run to run, what counts anew with each, and how it ends."""

import time

import pytest

from .conftest import House, Refused


def test_variables_imports_and_files_stay(a):
    a.run("import math\nx = 41\ndef f(): return x + 1\nopen('note', 'w').write('here')")
    assert a.value("[f(), math.floor(1.5), open('note').read()]") == [42, 1, "here"]


def test_each_run_has_its_own_input_stdin_and_output(a):
    assert a.value("return [n, input()]", input={"n": 1}, stdin="one") == [1, "one"]
    assert a.value("return [n, input()]", input={"n": 2}, stdin="two") == [2, "two"]
    assert a.run("print('first')")["stdout"] == "first\n"
    assert a.run("print('second')")["stdout"] == "second\n"
    assert a.value("import sys; return sys.stdin.read()") == ""


def test_an_error_does_not_end_it(a):
    a.run("x = 1")
    assert a.run("1 / 0")["error"]["name"] == "ZeroDivisionError"
    assert a.run("def f(:")["error"]["type"] == "SyntaxError"
    assert a.run("import sys; sys.exit(3)")["error"]["name"] == "SystemExit"
    assert a.value("x") == 1 and a.is_alive()


def test_files_in_out_are_told_once(a):
    def names(outcome):
        return [artifact["name"] for artifact in outcome["artifacts"]]
    assert names(a.run("open('out/one', 'w').write('1')")) == ["one"]
    assert names(a.run("open('out/two', 'w').write('2')")) == ["two"]
    assert names(a.run("pass")) == []
    assert names(a.run("open('out/one', 'a').write('1')")) == ["one"]


def test_refusals_are_told_in_the_run_they_belong_to(a):
    denied = a.run("import socket\ntry: socket.create_connection(('192.0.2.7', 1))\nexcept OSError: pass")
    assert denied["denials"][0]["rule"] == "network: none"
    assert a.run("pass")["denials"] == []


def test_a_run_that_takes_too_long_is_interrupted_and_the_session_stays(a):
    a.run("x = 5")
    for code in ("while True: pass", "import time; time.sleep(30)", "import subprocess; subprocess.run(['sleep', '30'])",
                 "import asyncio; await asyncio.sleep(30)"):
        outcome = a.run(code, policy={"timeout": "200ms"})
        assert (outcome["status"], outcome["error"]["limit"]) == ("TIMEOUT", "timeout"), code
        assert outcome["metrics"]["executionTimeMs"] < 1000
    assert a.value("x") == 5


def test_cpu_time_counts_run_by_run(a):
    burn = "import time\nend = time.process_time() + %s\nwhile time.process_time() < end: pass"
    for _ in range(3):
        assert a.run(burn % 0.2, policy={"cpu": "400ms"})["success"]
    outcome = a.run(burn % 5, policy={"cpu": "300ms"})
    assert (outcome["status"], outcome["error"]["limit"]) == ("TIMEOUT", "cpu")
    assert a.is_alive()


def test_code_that_will_not_be_interrupted_ends_its_session(house):
    a = house.open()
    outcome = a.run("import time\nwhile True:\n    try: time.sleep(9)\n    except KeyboardInterrupt: pass",
                    policy={"timeout": "100ms"})
    assert outcome["status"] == "TIMEOUT" and outcome["error"]["message"].endswith("the session has ended")
    assert not a.is_alive()
    with pytest.raises(Refused, match="conflict: the session has ended"):
        a.run("1")
    with pytest.raises(Refused, match="conflict: the session has ended"):
        a.read("note")
    a.close()


@pytest.mark.parametrize("code, status, words", [
    ("import os; os._exit(3)", "FAILED", "status 3"),
    ("import os; os._exit(0)", "FAILED", "ended the interpreter"),
    ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "FAILED", "signal 9"),
    ("import subprocess, ctypes; ctypes.string_at(0)", "FAILED", "signal 11"),
])
def test_the_death_of_the_interpreter_is_told(house, code, status, words):
    a = house.open()
    outcome = a.run(code)
    assert outcome["status"] == status
    assert words in outcome["error"]["message"] and "the session has ended" in outcome["error"]["message"]
    assert not a.is_alive()
    a.close()


def test_out_of_memory_in_a_line_of_python_does_not_end_it(house):
    a = house.open(memory="64M")
    assert a.run("x = bytearray(200 << 20)", policy={"memory": "64M"})["status"] == "MEMORY_ERROR"
    assert a.is_alive()
    a.close()


def test_too_much_output_interrupts_the_run(a):
    outcome = a.run("while True: print('x' * 1000)", policy={"output": "10K"})
    assert outcome["error"]["limit"] == "output" and len(outcome["stdout"]) <= 10 << 10
    assert a.value("return 1") == 1


def test_too_large_an_answer_does_not_end_it(a):
    assert "write it to a file" in a.run("'x' * 100000", policy={"output": "10K"})["error"]["message"]
    assert a.value("return 1") == 1


def test_a_run_can_be_cancelled_and_the_session_stays(a):
    a.run("x = 1")
    run = a.start("import time; time.sleep(30)")
    time.sleep(0.1)
    a.house.ask(op="cancel", whom=run.tag)()
    assert run()["outcome"]["status"] == "CANCELLED"
    assert a.value("x") == 1


def test_a_run_waits_its_turn_and_can_be_cancelled_meanwhile(a):
    first = a.start("import time; time.sleep(0.3); x = 1")
    time.sleep(0.05)
    second, third = a.start("x + 1"), a.start("x = 9")
    time.sleep(0.05)
    a.house.ask(op="cancel", whom=third.tag)()
    assert third()["outcome"]["status"] == "CANCELLED"
    assert first()["outcome"]["success"] and second()["outcome"]["result"] == 2


def test_closing_ends_a_run_under_way(house):
    a = house.open()
    run = a.start("import time; time.sleep(30)")
    time.sleep(0.1)
    began = time.monotonic()
    a.close()
    assert run()["outcome"]["status"] == "CANCELLED" and time.monotonic() - began < 2


def test_what_runs_between_two_runs_gets_no_cpu_time(a):
    a.run("import threading, time\ncount = 0\ndef work():\n    global count\n"
          "    while True:\n        count += 1\nthreading.Thread(target=work, daemon=True).start()")
    before = a.value("return count, time.process_time()")
    time.sleep(0.5)
    after = a.value("return count, time.process_time()")
    assert after[1] - before[1] < 0.1


def test_a_session_runs_its_own_language(a):
    with pytest.raises(Refused, match="this session runs python, not bash"):
        a.run("true", language="bash")


def test_sessions_leave_room_for_other_runs():
    house = House(cells=4)
    kept = [house.open() for _ in range(3)]
    with pytest.raises(Refused, match="too_many: open a session: 3 of 4 cells are taken by sessions"):
        house.open()
    assert house.ask(op="run", code="return 7", language="python")()["outcome"]["result"] == 7
    kept.pop().close()
    house.open()
    assert house.end() == 0


def test_a_session_is_sealed_like_any_cell(a):
    status = a.value("return dict(line.split(':\\t', 1) for line in open('/proc/self/status').read().splitlines())")
    assert status["CapEff"] == status["CapBnd"] == status["CapPrm"] == "0" * 16
    assert (status["Seccomp"], status["NoNewPrivs"]) == ("2", "1")
    attestation = a.run("1")["attestation"]
    assert attestation["capabilities"] == "none" and attestation["seccomp"] == "filter"
