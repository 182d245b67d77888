# SPDX-License-Identifier: Apache-2.0
"""`retort mcp`: one message a line, answered whatever comes, until input ends."""

import json
import os
import signal
import time

import pytest

from peers import CAPABILITIES, LEGACY, LEVEL, MODERN, VERSION, Failed, Stdio

# Lines come as they are printed only when nothing has to be masked in them.
CLEAR = {"sandbox_config": {"piiProtection": False}}
META = {VERSION: MODERN, CAPABILITIES: {}}


@pytest.fixture(scope="module")
def line():
    with Stdio() as one:
        one.initialize()
        yield one


def test_both_eras_are_spoken_on_one_line(line):
    assert line.request("ping") == {}
    found = line.request("server/discover", {"_meta": META})
    assert found["supportedVersions"] == [MODERN] and found["resultType"] == "complete"
    result = line.request("tools/call", {"_meta": META, "name": "pml_execute_code",
                                         "arguments": {"code": "return 6 * 7"}})
    assert result["structuredContent"]["result"] == 42
    assert "resultType" not in line.call("pml_execute_code", code="return 6 * 7")


def test_what_comes_before_initialize_is_answered_and_survived():
    with Stdio() as fresh:
        with pytest.raises(Failed) as why:
            fresh.request("no/such")
        assert why.value.code == -32601
        assert fresh.initialize()["protocolVersion"] == LEGACY


@pytest.mark.parametrize("text, code", [
    (b"garbage", -32700), (b"\xff\xfe", -32700), (b"{}", -32600), (b"[]", -32600),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600), (b"null", -32600)])
def test_broken_lines_are_told_so(line, text, code):
    line.send(text)
    answer = line.next()
    assert answer["error"]["code"] == code and "id" not in answer


def test_a_long_message_is_a_message(line):
    result = line.call("execute_code", language="python", code="result = len(input_data)",
                       input="x" * 5_000_000)
    assert result["content"][0]["text"] == "5000000"


def test_a_batch_is_answered_in_the_one_revision_that_has_them():
    with Stdio() as old:
        old.initialize("2025-03-26")
        old.send([{"jsonrpc": "2.0", "id": 1, "method": "ping"},
                  {"jsonrpc": "2.0", "method": "notifications/initialized"},
                  {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
                      "name": "execute_code", "arguments": {"language": "python",
                                                            "code": "result = 1"}}}])
        answers = old.next()
        assert [one["id"] for one in answers] == [1, 2]
        assert answers[1]["result"]["content"][0]["text"] == "1"


def test_calls_are_answered_in_the_order_they_end(line):
    slow = line.start("tools/call", {"name": "execute_code", "arguments": {
        "language": "python", "code": "import time; time.sleep(1.5); result = 'slow'"}})
    began = time.monotonic()
    assert line.request("ping") == {}
    assert time.monotonic() - began < 1
    assert line.answer(slow)["result"]["content"][0]["text"] == '"slow"'


@pytest.mark.parametrize("meta", [None, META], ids=["legacy", "modern"])
def test_a_cancelled_call_is_not_answered(line, meta):
    params = {"name": "pml_execute_code", "arguments": {
        **CLEAR, "language": "python", "code": f"import time; print('begun', flush=True); time.sleep(20) # {meta}"}}
    params["_meta"] = {**(meta or {}), "progressToken": "t", LEVEL: "info"}
    number = line.start("tools/call", params)
    while line.next().get("params", {}).get("message") != "begun":
        pass
    line.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
               "params": {"requestId": number}})
    began = time.monotonic()
    follower = line.start("ping")
    assert line.answer(follower)["result"] == {}
    # Its slot is free again at once: six such runs are all the memory there is.
    assert line.call("execute_code", language="python", code="result = 1")
    assert time.monotonic() - began < 10
    assert number not in [message.get("id") for message in line.others]


def test_a_call_can_be_cancelled_by_the_very_next_line(line):
    began = time.monotonic()
    number = line.start("tools/call", {"name": "pml_execute_code", "arguments": {
        "language": "python", "code": "import time; time.sleep(20) # at once"}})
    line.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
               "params": {"requestId": number}})
    assert line.call("execute_code", language="python", code="result = 1")
    assert time.monotonic() - began < 10
    assert number not in [message.get("id") for message in line.others]


def test_the_end_of_input_ends_it_after_what_was_asked():
    with Stdio() as one:
        one.initialize()
        number = one.start("tools/call", {"name": "execute_code", "arguments": {
            "language": "python", "code": "import time; time.sleep(0.5); result = 7"}})
        one.process.stdin.close()
        assert one.answer(number)["result"]["content"][0]["text"] == "7"
        assert one.process.wait(20) == 0


def test_a_listener_is_told_of_the_end():
    with Stdio() as one:
        one.start("subscriptions/listen", {"_meta": META, "notifications": {}})
        assert one.next()["method"] == "notifications/subscriptions/acknowledged"
        one.process.stdin.close()
        assert one.next()["result"]["resultType"] == "complete"
        assert one.process.wait(20) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_what_runs(number):
    with Stdio() as one:
        one.initialize()
        one.start("tools/call", {"name": "pml_execute_code", "_meta": {"progressToken": 1},
                                 "arguments": {**CLEAR, "language": "python", "code":
                                               "import time; print('begun', flush=True); time.sleep(60)"}})
        while one.next().get("params", {}).get("message") != "begun":
            pass
        one.process.send_signal(number)
        assert one.process.wait(20) == 0


def test_every_window_has_a_directory(tmp_path):
    with Stdio(data_dir=str(tmp_path)) as one, Stdio(data_dir=str(tmp_path)) as two:
        for window in (one, two):
            window.initialize()
            assert window.call("execute_code", language="python", code="result = 1")
        assert os.path.exists(tmp_path / "retort.db")
        assert os.path.exists(tmp_path / "mcp/1/retort.db")


def test_only_messages_are_on_stdout():
    with Stdio("--log.level", "debug") as one:
        one.initialize()
        one.call("execute_code", language="python", code="print('text')")
        one.close()
        while (raw := one.lines.get(timeout=20)) is not None:
            assert json.loads(raw)["jsonrpc"] == "2.0"
