# SPDX-License-Identifier: Apache-2.0
"""Sessions of bash: each run is a shell of its own, which finds what the last one left."""

import time

import pytest


@pytest.fixture
def s(house):
    session = house.open("bash")
    yield session
    session.close()


def test_files_directory_and_exported_variables_stay(s):
    s.run("export A='1\n2' B=3; local=4; mkdir -p d; cd d; echo kept > f; function greet { echo hi; }; export -f greet")
    assert s.run('printf "%s|%s|%s|%s|%s|%s" "$A" "$B" "$local" "$PWD" "$(cat f)" "$(greet)"')["stdout"] == "1\n2|3||/work/d|kept|hi"
    s.run("unset B; cd ..")
    assert s.run('echo "${B-unset} $PWD"')["stdout"] == "unset /work\n"


def test_each_run_has_its_own_input_stdin_and_result(s):
    assert s.value('RESULT="$INPUT_n $(cat)"', input={"n": "one"}) == 'one {"n":"one"}'
    assert s.value('RESULT="${INPUT_n-none} $(cat)"', stdin="two") == "none two"
    assert s.run('cat; echo "${RESULT-none}"')["stdout"] == "none\n"


def test_an_exit_does_not_end_it(s):
    s.run("export X=1")
    assert s.run("export X=2; exit 3")["exit_code"] == 3
    assert s.run("kill -9 $$")["status"] == "FAILED"
    assert s.run("echo $X")["stdout"] == "2\n"


@pytest.mark.parametrize("code", ["sleep 30", "while :; do :; done", "trap '' INT; while :; do sleep 1; done", "sleep 30 | cat"])
def test_a_run_that_takes_too_long_is_interrupted_and_the_session_stays(s, code):
    s.run("export X=1")
    assert s.run(code, policy={"timeout": "150ms"})["status"] == "TIMEOUT"
    assert s.is_alive() and s.run("echo $X")["stdout"] == "1\n"


def test_too_large_an_answer_does_not_end_it(s):
    assert "write it to a file" in s.run("RESULT=$(head -c 100000 /dev/zero | tr '\\0' x)", policy={"output": "10K"})["error"]["message"]
    assert s.value("RESULT=1") == 1


def test_what_runs_in_the_background_sleeps_between_runs(s):
    s.run("(while :; do echo x >> /work/ticks; sleep 0.01; done) > /dev/null 2>&1 &")
    first = s.value("RESULT=$(wc -l < /work/ticks)")
    time.sleep(0.5)
    assert s.value("RESULT=$(wc -l < /work/ticks)") - first < 25
