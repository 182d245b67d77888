# SPDX-License-Identifier: Apache-2.0
"""Code that speaks on the control socket itself. Whatever it says, the caller gets one clean answer."""

import os
import subprocess
import time

import pytest

HEAD = """
import json, os, socket, struct, sys, time
def frame(text, length=None):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("I", len(data) if length is None else length) + data
def send(data):
    view = memoryview(data)
    while view:
        view = view[os.write(3, view):]
"""
FORGERIES = {
    "garbage": "send(os.urandom(1000))",
    "one byte": "send(b'x'); os._exit(0)",
    "half a length": "send(b'\\1\\0'); os._exit(0)",
    "a length and no frame": "send(struct.pack('I', 100)); os._exit(0)",
    "a huge length": "send(frame('{}', 0xffffffff))",
    "a length just over the limit": "send(frame('{}', (10 << 20) + (64 << 10) + 1))",
    "an empty frame": "send(frame(''))",
    "invalid JSON": "send(frame('{\"op\":\"result\", nonsense')); time.sleep(1)",
    "invalid UTF-8": "send(frame(b'{\"op\":\"result\",\"value\":\"\\xff\\xfe\"}')); time.sleep(1)",
    "a NUL": "send(frame(b'{\"op\":\"result\",\"value\":\"\\0\"}')); time.sleep(1)",
    "deep nesting": "send(frame('[' * 100000 + ']' * 100000)); time.sleep(1)",
    "deep nesting in a value": "send(frame('{\"op\":\"result\",\"value\":' + '[' * 5000 + ']' * 5000 + '}')); time.sleep(1)",
    "a number of a million digits": "send(frame('{\"op\":\"result\",\"value\":' + '9' * 1000000 + '}')); time.sleep(1)",
    "not an object": "send(frame('[1,2,3]')); time.sleep(1)",
    "an unknown op": "send(frame('{\"op\":\"tool\"}')); time.sleep(1)",
    "another hello": "send(frame('{\"op\":\"hello\",\"layers\":{}}')); time.sleep(1)",
    "unsealed": "send(frame('{\"op\":\"unsealed\",\"message\":\"%s%s%n\"}')); time.sleep(1)",
    "an op of another type": "send(frame('{\"op\":7,\"value\":1}')); time.sleep(1)",
    "an error with fields of other types": "send(frame(json.dumps({'op': 'error', 'type': 1, 'name': [], 'message': {}, 'line': 'x', "
                                           "'column': -5, 'stack': 9, 'errno': '13', 'path': [1], 'status': 1e300}))); time.sleep(1)",
    "an error with enormous numbers": "send(frame('{\"op\":\"error\",\"message\":\"m\",\"line\":9223372036854775807,\"status\":99999}')); time.sleep(1)",
    "an error with terminal controls": "send(frame(json.dumps({'op': 'error', 'type': 'X', 'message': '\\x1b]0;owned\\x07', 'name': '\\x1b[2J'}))); time.sleep(1)",
    "a fake result, then the real one": "send(frame('{\"op\":\"result\",\"id\":1,\"value\":\"fake\"}'))",
    "a result for another run": "send(frame('{\"op\":\"result\",\"id\":77,\"value\":\"fake\"}'))",
    "a closed socket": "os.close(3)",
    "a socket that is shut down": "socket.socket(fileno=os.dup(3)).shutdown(socket.SHUT_RDWR)",
    "a socket swapped for a pipe": "r, w = os.pipe(); os.dup2(w, 3)",
    "descriptors": "socket.send_fds(socket.socket(fileno=os.dup(3)), [frame('{\"op\":\"result\",\"value\":1}')], [0, 1, 2, 0, 1]); time.sleep(1)",
    "thousands of descriptors": "s = socket.socket(fileno=os.dup(3))\nfor i in range(200): socket.send_fds(s, [b'\\0'], [0] * 200)",
    "a frame in single bytes": "for b in frame('{\"op\":\"result\",\"value\":\"slow\"}'): send(bytes([b]))\ntime.sleep(1)",
    "our own orders read away": "os.set_blocking(3, False)\ntry: os.read(3, 65536)\nexcept BlockingIOError: pass",
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_frame_gets_one_clean_answer(run, name):
    answer = run("python", HEAD + FORGERIES[name] + "\nreturn 'real'", timeout="5s", wait=20)
    assert answer["status"] in ("SUCCESS", "FAILED", "TIMEOUT")
    assert answer["success"] == (answer["error"] is None)
    assert (answer["exit_status"] == 0) == answer["success"]
    assert answer["attestation"]["seccomp"] == "filter"
    assert answer["seconds"] < 10


@pytest.mark.parametrize("name, code", {
    "node closes its socket": "require('fs').closeSync(3); return 1",
    "node writes garbage": "require('fs').writeSync(3, Buffer.alloc(1000, 0xff)); return 1",
    "node writes invalid JSON": "require('fs').writeSync(3, Buffer.from([2,0,0,0,120,120])); return 1",
}.items())
def test_a_forged_frame_of_node_gets_one_clean_answer(run, name, code):
    answer = run("javascript", code, timeout="3s", wait=20)
    assert answer["status"] in ("SUCCESS", "FAILED", "TIMEOUT") and answer["seconds"] < 8


FLOODS = {
    "empty frames": "while True: os.write(3, bytes(65536))",
    "small frames": "data = frame('{\"op\":\"result\",\"value\":1}') * 2000\nwhile True: send(data)",
    "frames from a child that stays": "data = frame('{}') * 9000\nif os.fork() == 0:\n    while True: send(data)",
    "frames after the end": "data = frame('{}') * 9000\nif os.fork() == 0:\n    while True: send(data)\ntime.sleep(0.3)\nos._exit(0)",
    "frames from many children": "data = frame('{\"op\":\"x\"}') * 9000\nfor i in range(12):\n    if os.fork() == 0:\n        "
                                 "while True: os.write(3, data)",
    "denials": "import ctypes\nl = ctypes.CDLL(None)\nwhile True: l.syscall(165, 0, 0, 0, 0, 0)",
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_on_the_control_socket_ends_with_the_time_limit(run, name):
    answer = run("python", HEAD + FLOODS[name] + "\nreturn 'real'", timeout="1s", wait=8)
    assert answer["seconds"] < 5


def test_frames_do_not_pile_up_in_the_callers_memory(program):
    """Four hundred megabytes of answers, each within its limit; only one of them matters."""
    code = HEAD + """
data = frame('{"op":"result","value":"' + 'x' * (8 << 20) + '"}')
for i in range(50): send(data)
return 1"""
    child = subprocess.Popen([program, "run", "-l", "python", "-c", code, "--json", "--timeout", "5s"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0
    deadline = time.monotonic() + 20
    while child.poll() is None and time.monotonic() < deadline:
        try:
            with open(f"/proc/{child.pid}/status") as status:
                peak = max([peak] + [int(line.split()[1]) for line in status if line.startswith("VmHWM")])
        except OSError:
            pass
        time.sleep(0.005)
    was_hanging = child.poll() is None
    child.kill()
    child.wait()
    assert not was_hanging
    assert peak < 150 << 10, f"{peak >> 10} MB"


def test_a_forged_answer_cannot_hide_a_limit(run):
    answer = run("python", HEAD + """
if os.fork() == 0:
    send(frame('{"op":"result","id":1,"value":"all is well"}'))
    os._exit(0)
while True: pass""", timeout="1s", wait=15)
    assert answer["seconds"] < 5


def test_a_descriptor_smuggled_to_the_caller_is_dropped(program):
    """After a thousand sent descriptors the caller holds no more than before."""
    code = HEAD + """
s = socket.socket(fileno=os.dup(3))
for i in range(50): socket.send_fds(s, [b'\\0\\0\\0\\0'], [0] * 20)
time.sleep(5)"""
    child = subprocess.Popen([program, "run", "-l", "python", "-c", code, "--json", "--timeout", "3s"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1.5)
    try:
        held = len(os.listdir(f"/proc/{child.pid}/fd"))
    except OSError:
        held = 0  # it has ended already
    child.kill()
    child.wait()
    assert held < 40


def test_the_answer_on_a_terminal_is_clean_too(retort):
    done = retort("run", "-l", "python", "-c", HEAD + "send(frame('nonsense')); time.sleep(1)", timeout=20)
    assert done.status not in (0, 2) and done.stderr.startswith("retort: ")
