# SPDX-License-Identifier: Apache-2.0
"""Calls to tools, frame by frame: the test is the daemon, and answers when it likes."""

import json
import os
import socket
import struct

import pytest

from harness import Guest

CALL = {"python": "github.ask(n={n})", "javascript": "await github.ask({{ n: {n} }})"}
LEAVE = {"python": "left = github.ask(n=0)\nimport asyncio\nawait asyncio.sleep(0)\nreturn 1",
         "javascript": "github.ask({ n: 0 }).then((x) => { globalThis.late = x; }); return 1"}


@pytest.fixture(params=["python", "javascript"])
def guest(request):
    one = Guest(request.param)
    yield one
    one.finish()


def begin(guest, code, **more):
    guest.order(code, keep=True, tools=["github"], argument_bytes=1000, **more)


def say(guest, fds=(), **frame):
    data = json.dumps(frame).encode()
    socket.send_fds(guest.socket, [struct.pack("=I", len(data)) + data], list(fds))


def answer(guest, call, **more):
    say(guest, op="answer", id=call["id"], call=call["call"], **more)


def test_a_call_begins_as_the_daemon_expects(guest):
    begin(guest, CALL[guest.language].format(n=1))
    text = guest.raw_reply()
    assert text.startswith('{"op":"call",')
    assert json.loads(text) == {"op": "call", "id": 1, "call": 1, "tool": "github:ask", "arguments": {"n": 1}}
    answer(guest, json.loads(text), value={"x": 1.5})
    assert guest.reply() == {"op": "result", "id": 1, "value": {"x": 1.5}}


def test_a_value_may_come_in_a_memory_file(guest):
    begin(guest, CALL[guest.language].format(n=1))
    call = guest.reply()
    file = os.memfd_create("value")
    os.write(file, json.dumps(["ä"] * 50_000).encode())
    answer(guest, call, value_fd=0, fds=[file])
    os.close(file)
    assert guest.reply()["value"] == ["ä"] * 50_000
    begin(guest, "len(__import__('os').listdir('/proc/self/fd'))" if guest.language == "python"
          else "require('fs').readdirSync('/proc/self/fd').length")
    before = guest.reply()["value"]
    begin(guest, CALL[guest.language].format(n=2))
    null = os.open("/dev/null", os.O_RDONLY)
    answer(guest, guest.reply(), value=1, fds=[null, null])
    os.close(null)
    guest.reply()
    begin(guest, "len(__import__('os').listdir('/proc/self/fd'))" if guest.language == "python"
          else "require('fs').readdirSync('/proc/self/fd').length")
    assert guest.reply()["value"] == before, "a descriptor nobody asked for stays open"


def test_an_answer_that_comes_after_its_run_reaches_nobody(guest):
    begin(guest, LEAVE[guest.language])
    left = guest.reply()
    assert guest.reply()["value"] == 1
    answer(guest, left, value="late")
    begin(guest, CALL[guest.language].format(n=2))
    call = guest.reply()
    assert (call["id"], call["arguments"]) == (2, {"n": 2})
    answer(guest, left, value="later still")
    say(guest, op="answer", id=2, call=999, value="of nobody")
    answer(guest, call, value="right")
    assert guest.reply() == {"op": "result", "id": 2, "value": "right"}


def test_several_answers_in_one_piece_are_told_apart(guest):
    code = ("import asyncio\nreturn await asyncio.gather(*[github.ask(n=i) for i in range(3)])"
            if guest.language == "python" else "return Promise.all([0, 1, 2].map((n) => github.ask({ n })))")
    begin(guest, code)
    calls = [guest.reply() for _ in range(3)]
    frames = [json.dumps({"op": "answer", "id": 1, "call": c["call"], "value": c["arguments"]["n"] * 10}).encode()
              for c in reversed(calls)]
    guest.socket.sendall(b"".join(struct.pack("=I", len(f)) + f for f in frames))
    assert guest.reply()["value"] == [0, 10, 20]


def test_no_more_than_64_calls_are_sent_before_an_answer_comes(guest):
    code = ("import asyncio\nreturn await asyncio.gather(*[github.ask(n=i) for i in range(100)])"
            if guest.language == "python"
            else "return Promise.all(Array.from({ length: 100 }, (_, n) => github.ask({ n })))")
    begin(guest, code)
    under_way = [guest.reply() for _ in range(64)]
    guest.socket.settimeout(0.2)
    with pytest.raises(TimeoutError):
        guest.socket.recv(1)
    for _ in range(100):
        call = under_way.pop(0)
        answer(guest, call, value=call["arguments"]["n"])
        if call["arguments"]["n"] < 36:
            under_way.append(guest.reply())
    assert guest.reply()["value"] == [*range(100)]


def test_a_thread_that_waits_for_a_tool_does_not_take_the_next_order():
    guest = Guest("python")
    begin(guest, "import threading\nfound = []\ndef work():\n    try: github.ask()\n"
                 "    except MCPToolError as e: found.append(str(e))\n"
                 "thread = threading.Thread(target=work, daemon=True)\nthread.start()\n"
                 "github.ask(n=1)")
    calls = [guest.reply(), guest.reply()]
    answer(guest, next(c for c in calls if c["arguments"]), value=5)
    assert guest.reply() == {"op": "result", "id": 1, "value": 5}
    begin(guest, "thread.join(20)\nreturn found")
    assert guest.reply() == {"op": "result", "id": 2, "value": ["the run that called github:ask has ended"]}
    assert guest.finish().status == 0


def test_an_error_may_say_little(guest):
    begin(guest, CALL[guest.language].format(n=1))
    answer(guest, guest.reply(), error={"message": "no"})
    reply = guest.reply()
    assert (reply["name"], reply["message"], reply["line"]) == ("MCPToolError", "no", 1)
