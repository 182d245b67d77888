# SPDX-License-Identifier: Apache-2.0
"""`retort run` as a command: files, options, streams, statuses, repeats, and odd code."""

import json
import os
import signal
import subprocess
import time

import pytest


# ---- code ----

@pytest.mark.parametrize("ending, code", [("py", "return 42"), ("js", "return 42"), ("mjs", "return 42"), ("ts", "return 42 as number"), ("sh", "echo 42")])
def test_a_file_runs_by_its_ending(retort, tmp_path, ending, code):
    path = tmp_path / f"hello.{ending}"
    path.write_text(code)
    done = retort("run", path)
    assert (done.status, done.stdout.strip()) == (0, "42"), done.stderr


def test_a_file_name_is_the_name_in_errors(retort, tmp_path):
    (tmp_path / "my_code.py").write_text("x = 1\nraise ValueError('x')")
    done = retort("run", tmp_path / "my_code.py")
    assert done.status == 1 and 'File "my_code.py", line 2' in done.stderr and str(tmp_path) not in done.stderr


@pytest.mark.parametrize("args", [("run", "-", "-l", "python"), ("run", "-c", "-", "-l", "python")])
def test_code_may_come_on_stdin(retort, args):
    assert retort(*args, stdin=b"return 6 * 7").stdout == "42\n"


@pytest.mark.parametrize("alias", ["py", "python3", "js", "node", "ts", "sh", "shell"])
def test_languages_have_short_names(retort, alias):
    done = retort("run", "-l", alias, "-c", "echo 1" if alias in ("sh", "shell") else "1")
    assert done.status == 0, done.stderr


def test_stdin_reaches_the_code(retort):
    assert retort("run", "-l", "python", "-c", "import sys\nreturn sys.stdin.read().upper()", stdin=b"abc").stdout == "ABC\n"
    assert retort("run", "-l", "bash", "-c", "tr a-z A-Z", stdin=b"abc").stdout.strip() == "ABC"
    assert retort("run", "-l", "javascript", "-c", "return require('fs').readFileSync(0, 'utf8').toUpperCase()", stdin=b"abc").stdout == "ABC\n"


def test_a_large_stdin_that_nobody_reads_does_no_harm(retort):
    assert retort("run", "-l", "python", "-c", "return 1", stdin=b"x" * (20 << 20)).stdout == "1\n"


@pytest.mark.parametrize("code", [b"", b"   \n\t ", b"\xff\xfe\x00binary", b"a\x00b", b"print('\xe9')", os.urandom(3000)],
                         ids=["empty", "blank", "utf16", "nul", "latin1", "random"])
def test_what_is_not_code_is_refused_in_words(retort, tmp_path, code):
    path = tmp_path / "code.py"
    path.write_bytes(code)
    done = retort("run", path, "--json")
    assert done.status == 2 and done.stderr.startswith("retort: ") and len(done.stderr) < 400
    assert done.stdout == "" or not json.loads(done.stdout)["success"]


def test_a_hundred_megabytes_of_code_are_refused_quickly(retort, tmp_path):
    path = tmp_path / "big.py"
    with open(path, "wb") as f:
        f.write(b"# " + b"x" * (100 << 20))
    done = retort("run", path)
    assert done.status == 2 and done.seconds < 5 and "byte" in done.stderr


def test_code_over_its_limit_is_refused_with_both_numbers(retort, tmp_path):
    path = tmp_path / "big.py"
    path.write_text("# " + "x" * 2_000_000)
    done = retort("run", path)
    assert done.status == 2 and "2000002" in done.stderr and "1048576" in done.stderr


def test_code_of_many_lines_runs(run):
    assert run("python", "x = 0\n" + "x += 1\n" * 30000 + "return x")["result"] == 30000


def test_windows_lines_a_mark_and_a_shebang_run(run):
    assert run("python", "#!/usr/bin/env python3\r\nx = 1\r\nreturn x + 1\r\n")["result"] == 2
    assert run("python", "\ufeffreturn 1")["result"] == 1
    assert run("javascript", "#!/usr/bin/env node\nreturn 3")["result"] == 3


# ---- words for wrong command lines ----

WRONG = {
    "no code": (["run"], "MISSING_CODE"),
    "an empty code": (["run", "-l", "python", "-c", ""], "MISSING_CODE"),
    "an unknown language": (["run", "-l", "cobol", "-c", "x"], "cobol"),
    "no language": (["run", "-c", "x"], "language"),
    "an unknown ending": (["run", "/etc/hosts"], "language"),
    "a missing file": (["run", "/nowhere/x.py"], "/nowhere/x.py"),
    "a directory": (["run", "/usr", "-l", "python"], "/usr"),
    "two files": (["run", "a.py", "b.py"], "one file"),
    "a file and code": (["run", "a.py", "-c", "1"], "not both"),
    "an unknown option": (["run", "--speed", "9"], "--speed"),
    "an option without its value": (["run", "-l"], "-l"),
    "a negative time": (["run", "-l", "python", "-c", "1", "--timeout", "-5s"], "timeout"),
    "no time at all": (["run", "-l", "python", "-c", "1", "--timeout", "0"], "timeout"),
    "too much time": (["run", "-l", "python", "-c", "1", "--timeout", "10000s"], "timeout"),
    "a time in words": (["run", "-l", "python", "-c", "1", "--timeout", "soon"], "soon"),
    "too little memory": (["run", "-l", "python", "-c", "1", "--memory", "1K"], "memory"),
    "negative memory": (["run", "-l", "python", "-c", "1", "--memory", "-1"], "memory"),
    "memory beyond counting": (["run", "-l", "python", "-c", "1", "--memory", "99999999999999999999G"], "memory"),
    "no processes": (["run", "-l", "python", "-c", "1", "--processes", "0"], "processes"),
    "half a process": (["run", "-l", "python", "-c", "1", "--processes", "1.5"], "processes"),
    "another kind of access": (["run", "-l", "python", "-c", "1", "--files", "all"], "sandboxed"),
    "network": (["run", "-l", "python", "-c", "1", "--network", "all"], "network"),
    "an env without value": (["run", "-l", "python", "-c", "1", "--env", "X"], "NAME=VALUE"),
    "an unknown preset": (["run", "-l", "python", "-c", "1", "-p", "fast"], "fast"),
    "a repeat in words": (["run", "-l", "python", "-c", "1", "--repeat", "often"], "--repeat"),
    "a repeat without end": (["run", "-l", "python", "-c", "1", "--repeat", "999999999999"], "--repeat"),
    "an unknown command": (["fly"], "fly"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_command_line_is_answered_in_words(retort, name):
    args, word = WRONG[name]
    done = retort(*args)
    assert done.status == 2 and word in done.stderr and done.stdout == ""
    assert done.stderr.startswith("retort: ") and done.stderr.count("\n") <= 3


# ---- streams ----

@pytest.mark.parametrize("language, code", [
    ("python", "import time\nprint('first', flush=True)\ntime.sleep(2)\nprint('last')"),
    ("javascript", "console.log('first'); await new Promise(r => setTimeout(r, 2000)); console.log('last')"),
    ("bash", "echo first; sleep 2; echo last"),
])
def test_output_arrives_while_the_code_runs(program, language, code):
    child = subprocess.Popen([program, "run", "-l", language, "-c", code], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"first\n"
    first_at = time.monotonic()
    assert child.stdout.readline() == b"last\n"
    assert time.monotonic() - first_at > 1.2
    assert child.wait(10) == 0


def test_stdout_and_stderr_stay_apart(retort):
    done = retort("run", "-l", "bash", "-c", "echo out; echo err >&2")
    assert (done.stdout, done.stderr) == ("out\n", "err\n")


def test_the_answer_comes_after_the_output_on_a_line_of_its_own(retort):
    assert retort("run", "-l", "python", "-c", "print('a', end='')\nreturn [1, 2]").stdout == "a\n[1,2]\n"


def test_text_answers_as_itself_and_nothing_as_nothing(retort):
    assert retort("run", "-l", "python", "-c", "return 'plain'").stdout == "plain\n"
    assert retort("run", "-l", "python", "-c", "return None").stdout == ""


def test_bash_output_is_printed_once(retort):
    assert retort("run", "-l", "bash", "-c", "echo 42").stdout == "42\n"


def test_output_that_is_not_text_still_makes_valid_json(run):
    answer = run("bash", "printf 'a\\xff\\xfe\\x00b'; printf '\\xf0\\x9f' >&2")
    assert answer["success"] and answer["stdout"].startswith("a") and answer["stdout"].endswith("b")


def test_output_that_is_not_text_reaches_a_pipe_unchanged(program):
    done = subprocess.run([program, "run", "-l", "bash", "-c", "printf '\\xff\\x00\\xfe'"], capture_output=True, stdin=subprocess.DEVNULL)
    assert done.stdout == b"\xff\x00\xfe"


def test_a_large_output_is_whole(run):
    answer = run("python", "for i in range(90000): print(f'{i:099}')", output="16M")
    lines = answer["stdout"].splitlines()
    assert len(lines) == 90000 and lines[-1].endswith("89999") and answer["metrics"]["outputBytes"] == 9_000_000


def test_a_caller_that_stops_reading_ends_the_run(program, left_on_host):
    child = subprocess.Popen([program, "run", "-l", "bash", "-c", "while :; do echo y; sleep 0.01; done; sleep 98765.7"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    child.stdout.readline()
    child.stdout.close()
    try:
        child.wait(8)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        pytest.fail("retort went on writing to a closed pipe")


@pytest.mark.parametrize("number", [2, 15])
def test_interrupting_the_caller_ends_the_run(program, left_on_host, number):
    marker = f"98765.8{number}"
    child = subprocess.Popen([program, "run", "-l", "bash", "-c", f"echo up; sleep {marker}"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))  # a background job ignores them
    child.stdout.readline()
    child.send_signal(number)
    assert child.wait(5) != 0
    assert left_on_host(marker) == {}


# ---- the answer as JSON ----

def test_the_answer_carries_all_its_fields(run):
    answer = run("python", "print('x')\nreturn 1")
    assert answer["id"].startswith("exec_") and answer["language"] == "python" and answer["runtime"] == "local"
    assert answer["status"] == "SUCCESS" and answer["success"] is True and answer["parsed"] is True
    assert answer["stdout"] == "x\n" and answer["exit_code"] == 0 and answer["error"] is None
    assert set(answer["metrics"]) == {"executionTimeMs", "startMs", "cpuMs", "memoryPeakBytes", "outputBytes"}
    assert answer["metrics"]["executionTimeMs"] > 0 and answer["metrics"]["memoryPeakBytes"] > 0


def test_the_answer_attests_the_layers_in_force(run):
    layers = run("python", "return 1", memory="100M", processes=9, scratch="10M")["attestation"]
    assert set(layers["namespaces"]) >= {"user", "pid", "mnt", "ipc", "uts", "net"}
    assert layers["capabilities"] == "none" and layers["no_new_privs"] is True and layers["seccomp"] == "filter"
    assert layers["memory"]["bytes"] == 100 << 20 and layers["processes"]["max"] == 9 and layers["scratch_bytes"] == 10 << 20
    assert layers["root"] == "read-only" and layers["network"] == "none" and layers["uid"] != 0
    assert isinstance(layers["landlock"], bool) and layers["ids"]["host_uid"] != 0


def test_what_is_attested_is_what_the_kernel_says(run):
    answer = run("python", """
status = dict(line.split(':\\t', 1) for line in open('/proc/self/status').read().splitlines() if ':\\t' in line)
import os
return {k: status[k].strip() for k in ('Uid', 'Seccomp', 'NoNewPrivs', 'CapEff', 'CapBnd')} | {'root': os.statvfs('/').f_flag & 1}""")
    kernel = answer["result"]
    assert kernel["Uid"].split() == [str(answer["attestation"]["uid"])] * 4
    assert (kernel["Seccomp"], kernel["NoNewPrivs"], kernel["root"]) == ("2", "1", 1)
    assert int(kernel["CapEff"], 16) == int(kernel["CapBnd"], 16) == 0


def test_numbers_are_exact(run):
    answer = run("python", "return [10**30, 0.1, 1e-7, -0.0, 123456789012345678]")
    assert answer["result"] == [10 ** 30, 0.1, 1e-7, -0.0, 123456789012345678]


# ---- artifacts ----

def test_files_in_out_are_kept_on_request(retort, tmp_path):
    done = retort("run", "-l", "python", "-c", "open('out/report.csv', 'w').write('a,b\\n1,2\\n')", "--out", tmp_path / "kept")
    assert done.status == 0 and (tmp_path / "kept/report.csv").read_text() == "a,b\n1,2\n"
    assert "report.csv (8 bytes)" in done.stderr


def test_without_a_place_for_them_files_are_announced(retort):
    done = retort("run", "-l", "bash", "-c", "echo x > out/f")
    assert "artifact f (2 bytes)" in done.stderr and "--out" in done.stderr


# ---- repeating ----

@pytest.mark.parametrize("language, code", [("python", "return 1"), ("javascript", "return 1"), ("bash", "RESULT=1")])
def test_repeating_answers_with_times(retort, language, code):
    done = retort("run", "-l", language, "-c", code, "--repeat", 20, "--json")
    times = json.loads(done.stdout)
    assert done.status == 0 and times["runs"] == 20 and times["failed"] == 0
    assert 0 < times["p50_ms"] <= times["p95_ms"] <= times["p99_ms"] and times["per_second"] > 0


def test_repeating_without_a_pool(retort):
    assert json.loads(retort("run", "-l", "bash", "-c", ":", "--repeat", 10, "--pool", 0, "--json").stdout)["failed"] == 0


def test_repeated_failures_are_counted(retort):
    done = retort("run", "-l", "python", "-c", "raise ValueError", "--repeat", 5, "--json")
    assert done.status == 1 and json.loads(done.stdout)["failed"] == 5


def test_each_repeat_has_a_fresh_cell(retort):
    done = retort("run", "-l", "bash", "-c", "[ ! -e /work/mark ] && touch /work/mark /tmp/mark", "--repeat", 15, "--json")
    assert json.loads(done.stdout)["failed"] == 0


def test_repeating_with_large_input(retort, tmp_path):
    (tmp_path / "in.csv").write_text("x" * 100000)
    done = retort("run", "-l", "python", "-c", "assert len(input_data) == 100000", "--input", f"@{tmp_path}/in.csv", "--repeat", 5, "--json")
    assert json.loads(done.stdout)["failed"] == 0
