# SPDX-License-Identifier: Apache-2.0
"""Sessions over HTTP: state that stays, files, branches."""

import time

import pytest


@pytest.fixture
def session(server, request):
    language = getattr(request, "param", "python")
    reply = server.post("/v1/sessions", {"language": language, "ttl": "5m"})
    assert reply.status == 201, reply
    yield reply.json
    server.delete(f"/v1/sessions/{reply.json['id']}")


def run(server, session, code, **members):
    reply = server.post(f"/v1/sessions/{session['id']}/execute", {"code": code, **members})
    assert reply.status == 200, reply
    return reply.json


def test_state_stays_between_runs(server, session):
    run(server, session, "import math\nx = 40\ndef add(n): return x + n")
    assert run(server, session, "return add(2)")["result"] == 42
    assert run(server, session, "1 / 0")["error"]["name"] == "ZeroDivisionError"
    assert run(server, session, "return math.floor(x)")["result"] == 40


@pytest.mark.parametrize("session", ["javascript"], indirect=True)
def test_state_stays_in_javascript(server, session):
    run(server, session, "const base = 40; let n = 1; function add(a) { return base + a }")
    assert run(server, session, "return add(2)")["result"] == 42


def test_files_go_in_and_come_out(server, session):
    files = f"/v1/sessions/{session['id']}/files"
    data = bytes(range(256)) * 1000
    assert server.put(f"{files}/data/in.bin", data, headers={"Content-Type": "application/octet-stream"}).status in (201, 204)
    assert run(server, session, "import hashlib; return hashlib.sha256(open('data/in.bin','rb').read()).hexdigest()")["result"] == \
        __import__("hashlib").sha256(data).hexdigest()
    run(server, session, "open('made.txt', 'w').write('hello')")
    assert server.get(f"{files}/made.txt").body == b"hello"
    names = [f["path"] for f in server.get(files).json["items"]]
    assert "data/in.bin" in names and "made.txt" in names
    assert server.delete(f"{files}/made.txt").status == 204
    assert server.get(f"{files}/made.txt").status == 404
    for path in ("../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "/etc/passwd"):
        assert server.get(f"{files}/{path}").status in (400, 403, 404)
    run(server, session, "import os; os.symlink('/etc', 'evil')")
    assert server.get(f"{files}/evil/passwd").status in (400, 403, 404)
    assert server.put(f"{files}/evil/x", b"x").status in (400, 403, 404, 409)


@pytest.mark.parametrize("session, set_up, change, look", [
    ("python", "big = list(range(100000)); n = 1", "n = 2; return n", "return [n, len(big)]"),
    ("javascript", "let big = Array.from({length: 100000}, (_, i) => i); let n = 1",
     "n = 2; return n", "return [n, big.length]"),
], indirect=["session"])
def test_a_branch_goes_its_own_way(server, session, set_up, change, look):
    run(server, session, set_up)
    reply = server.post(f"/v1/sessions/{session['id']}/branch", {"name": "what-if"})
    assert reply.status == 201, reply
    branch = reply.json
    assert branch["parent_id"] == session["id"]
    assert run(server, branch, change)["result"] == 2
    assert run(server, session, look)["result"] == [1, 100000]
    assert run(server, branch, look)["result"] == [2, 100000]
    assert server.delete(f"/v1/sessions/{session['id']}").status == 204
    assert run(server, branch, look)["result"] == [2, 100000]
    assert server.delete(f"/v1/sessions/{branch['id']}").status == 204


def test_what_cannot_be_branched_is_refused_by_name(server, session):
    run(server, session, "import threading, time\nt = threading.Thread(target=time.sleep, args=(60,), daemon=True); t.start()")
    reply = server.post(f"/v1/sessions/{session['id']}/branch", {})
    assert reply.status == 409 and "thread" in reply.json["error"]["message"], reply


def test_a_time_out_does_not_end_a_session(server, session):
    run(server, session, "x = 5")
    assert run(server, session, "while True: pass", policy={"timeout": "500ms"})["status"] == "TIMEOUT"
    assert run(server, session, "return x")["result"] == 5


def test_an_expired_session_is_gone(server):
    made = server.post("/v1/sessions", {"language": "python", "ttl": 1}).json
    deadline = time.monotonic() + 10
    while server.get(f"/v1/sessions/{made['id']}").json["status"] == "ACTIVE":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    reply = server.post(f"/v1/sessions/{made['id']}/execute", {"code": "1"})
    assert reply.status == 404 and "EXPIRED" in reply.json["error"]["message"]


def test_a_session_can_be_extended_listed_and_ended(server, session):
    reply = server.request("PATCH", f"/v1/sessions/{session['id']}", {"ttl": "1h"})
    assert reply.status == 200 and reply.json["expires_at"] > session["expires_at"]
    assert session["id"] in [s["id"] for s in server.get("/v1/sessions?status=ACTIVE").json["items"]]
    assert server.delete(f"/v1/sessions/{session['id']}").status == 204
    assert server.delete(f"/v1/sessions/{session['id']}").status == 404
    assert server.get(f"/v1/sessions/{session['id']}").json["status"] == "ENDED"


def test_a_dead_session_says_so(server, session):
    answer = run(server, session, "import os; os._exit(3)")
    assert not answer["success"]
    reply = server.post(f"/v1/sessions/{session['id']}/execute", {"code": "1"})
    assert reply.status == 404, reply


def test_one_session_cannot_block_the_others(server, session):
    import concurrent.futures
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        slow = [pool.submit(run, server, session, "import time; time.sleep(0.5)") for _ in range(10)]
        time.sleep(0.2)
        began = time.monotonic()
        assert server.run("return 1")["result"] == 1
        assert time.monotonic() - began < 2
        for one in slow:
            assert one.result()["success"]


def test_a_session_with_pandas_can_be_branched(server, session):
    run(server, session, "import pandas as pd\ndf = pd.DataFrame({'g': ['a', 'b', 'a'], 'n': [1, 2, 3]})")
    reply = server.post(f"/v1/sessions/{session['id']}/branch", {})
    assert reply.status == 201, reply
    assert run(server, reply.json, "return df.groupby('g').n.sum()")["result"] == {"a": 4, "b": 2}
    server.delete(f"/v1/sessions/{reply.json['id']}")
