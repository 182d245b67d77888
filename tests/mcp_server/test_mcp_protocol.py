# SPDX-License-Identifier: Apache-2.0
"""The protocol's rules beside what the public suite looks at: sessions and whose they are, versions,
batches, what hanging up means, coming back for the rest."""

import http.client
import re
import subprocess
import threading
import time

import pytest

from house import RETORT, serve
from peers import (CAPABILITIES, LEGACY, LEVEL, MODERN, VERSION, Failed, Http, Modern, Session,
                   events_of)

# Lines come as they are printed only when nothing has to be masked in them.
CLEAR = {"sandbox_config": {"piiProtection": False}}
SLOW = "import time\nprint('begun', flush=True)\ntime.sleep(20)\nreturn 'late'"


def wait_until(condition, within=15):
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


# ---- versions ----

@pytest.mark.parametrize("asked, agreed", [
    ("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2025-03-26", "2025-03-26"),
    ("2024-11-05", "2024-11-05"), ("2026-07-28", LEGACY), ("1999-01-01", LEGACY)])
def test_initialize_agrees_on_a_version_with_a_handshake(server, asked, agreed):
    assert Session(server, asked).introduction["protocolVersion"] == agreed


def test_a_version_we_do_not_speak_is_told_with_those_we_do(mcp):
    with pytest.raises(Failed) as why:
        mcp.request("tools/list", meta={VERSION: "2099-01-01"},
                    headers={"MCP-Protocol-Version": "2099-01-01"})
    assert (why.value.code, why.value.status) == (-32022, 400)
    assert why.value.data == {"supported": [MODERN], "requested": "2099-01-01"}


@pytest.mark.parametrize("headers", [
    {"MCP-Protocol-Version": "2025-11-25"}, {"MCP-Protocol-Version": None},
    {"Mcp-Method": "TOOLS/LIST"}, {"Mcp-Method": None}])
def test_headers_that_differ_from_the_body_are_refused(mcp, headers):
    with pytest.raises(Failed) as why:
        mcp.request("tools/list", headers=headers)
    assert (why.value.code, why.value.status) == (-32020, 400)


def test_a_modern_header_without_modern_meta_is_refused(server):
    status, _, (answer,) = Http(server).send(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        {"MCP-Protocol-Version": MODERN})
    assert (status, answer["error"]["code"]) == (400, -32602)


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "no/such"])
def test_methods_of_the_other_era_are_not_found(mcp, method):
    with pytest.raises(Failed) as why:
        mcp.request(method)
    assert (why.value.code, why.value.status) == (-32601, 404)


def test_an_unknown_method_does_not_tell_a_legacy_client_that_its_session_is_gone(session):
    with pytest.raises(Failed) as why:
        session.request("no/such")
    assert (why.value.code, why.value.status) == (-32601, 200)


def test_every_modern_result_has_what_the_era_wants(mcp):
    for method in ("server/discover", "tools/list", "resources/list", "resources/templates/list"):
        result = mcp.request(method)
        assert result["resultType"] == "complete"
        assert result["cacheScope"] == "private" and result["ttlMs"] >= 0
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "retort"


def test_results_of_older_versions_have_nothing_of_later_ones(server):
    old = Session(server, "2025-03-26")
    assert all("outputSchema" not in tool for tool in old.request("tools/list")["tools"])
    result = old.call("pml_execute_code", code="return 1")
    assert set(result) == {"content"}


# ---- envelopes ----

@pytest.mark.parametrize("body, code", [
    (b"{", -32700), (b"", -32700), (b'"text"', -32600), (b"{}", -32600),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600),
    (b"[]", -32600), (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600)])
def test_what_is_no_request_is_told_so(server, body, code):
    status, _, (answer,) = Http(server).send(body)
    assert (status, answer["error"]["code"]) == (400, code)
    assert answer.get("id", 1) == 1


def test_ids_come_back_as_they_were(session):
    for given in ("text", 0, -7, 12345678901234567890):
        _, _, (answer,) = session.send({"jsonrpc": "2.0", "id": given, "method": "ping"})
        assert answer == {"jsonrpc": "2.0", "id": given, "result": {}}


def test_batches_exist_in_one_revision_alone(server):
    batch = [{"jsonrpc": "2.0", "id": 1, "method": "ping"},
             {"jsonrpc": "2.0", "method": "notifications/initialized"},
             {"jsonrpc": "2.0", "id": 2, "method": "no/such"}]
    status, _, (answers,) = Session(server, "2025-03-26").send(batch)
    assert status == 200 and [one["id"] for one in answers] == [1, 2]
    assert answers[0]["result"] == {} and answers[1]["error"]["code"] == -32601
    status, _, (answer,) = Session(server, "2025-06-18").send(batch)
    assert (status, answer["error"]["code"]) == (400, -32600)


def test_a_request_without_a_session_is_answered(server):
    """So that curl can ask."""
    _, _, (answer,) = Http(server).send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert answer["result"]["tools"]


def test_older_gateways_address_is_understood(server):
    reply = server.post("/message", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert reply.json["result"]["tools"]
    reply = server.post("/message", b"{")
    assert (reply.status, reply.json["error"]["code"]) == (400, -32700)


def test_a_client_that_takes_no_events_gets_json(server):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
               "params": {"name": "execute_code", "_meta": {"progressToken": 1},
                          "arguments": {"language": "python", "code": "print(1)\nresult = 2"}}}
    _, headers, (answer,) = Http(server).send(message, {"Accept": "application/json"})
    assert headers["Content-Type"].startswith("application/json")
    assert answer["result"]["content"][0]["text"] == "2"


# ---- sessions ----

def test_a_session_that_ended_is_gone(session, server):
    delete = lambda: server.delete("/mcp", headers={"Mcp-Session-Id": session.id}).status  # noqa: E731
    assert (delete(), delete()) == (204, 404)
    with pytest.raises(Failed) as why:
        session.request("ping")
    assert why.value.status == 404


def test_a_stale_session_id_does_not_keep_a_client_from_beginning_again(server):
    fresh = Http(server)
    status, headers, _ = fresh.send(fresh.message("initialize", {
        "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
        {"Mcp-Session-Id": "gone"})
    assert status == 200 and headers["Mcp-Session-Id"] not in ("gone", "")


def test_get_without_a_session_is_not_possible(server):
    reply = server.get("/mcp", headers={"Accept": "text/event-stream"})
    assert reply.status == 405 and "POST" in reply.headers["Allow"]


def make_keys(folder):
    keys = {}
    for role in ("owner", "member", "viewer"):
        done = subprocess.run([RETORT, "keys", "create", "--role", role, "--name", role,
                               "--data-dir", folder], capture_output=True, text=True, timeout=60)
        keys[role] = re.search(r"rt_\S+", done.stdout).group()
    return keys


def test_a_session_belongs_to_the_key_that_opened_it(tmp_path):
    key = make_keys(str(tmp_path))
    with serve(data_dir=str(tmp_path)) as one:
        mine = Session(one, key=key["owner"])
        assert mine.request("ping") == {}
        mine.key = key["member"]
        with pytest.raises(Failed) as why:
            mine.request("ping")
        assert why.value.status == 404
        assert Http(one).send(b"{}")[0] == 401
        viewer = Modern(one, key["viewer"])
        names = [tool["name"] for tool in viewer.request("tools/list")["tools"]]
        assert "pml_execute_code" not in names and "pml_read_artifact" in names
        with pytest.raises(Failed, match="permission"):
            viewer.call("pml_execute_code", code="return 1")


# ---- while it runs ----

def test_printed_lines_are_log_messages_and_progress(mcp):
    mcp.call("pml_execute_code", language="python",
             code="import sys\nprint('one')\nprint('two', file=sys.stderr)\nprint('no end', end='')",
             _meta={LEVEL: "info", "progressToken": "p"})
    logs = [(n["params"]["level"], n["params"]["logger"], n["params"]["data"])
            for n in mcp.notifications if n["method"] == "notifications/message"]
    assert sorted(logs) == [("info", "stdout", "no end"), ("info", "stdout", "one"),
                            ("warning", "stderr", "two")]
    steps = [n["params"] for n in mcp.notifications if n["method"] == "notifications/progress"]
    assert {step["progressToken"] for step in steps} == {"p"}
    assert [s["progress"] for s in steps] == sorted({s["progress"] for s in steps})


def test_nobody_hears_who_did_not_ask(mcp):
    mcp.call("pml_execute_code", language="python", code="print('psst')")
    assert mcp.notifications == []


def test_a_legacy_client_sets_the_level(session):
    session.call("pml_execute_code", language="python", code="print('a')")
    assert [n["params"]["data"] for n in session.notifications] == ["a"]
    session.request("logging/setLevel", {"level": "error"})
    session.call("pml_execute_code", language="python", code="print('b')")
    assert session.notifications == []
    with pytest.raises(Failed, match="log level"):
        session.request("logging/setLevel", {"level": "loud"})


def slow_call(peer, **meta):
    return peer.message("tools/call", {"name": "pml_execute_code",
                                       "arguments": {"language": "python", "code": SLOW, **CLEAR}},
                        {"progressToken": "slow", **meta})


def read_until_begun(answer):
    for event_id, message in events_of(answer):
        if message.get("params", {}).get("message") == "begun":
            return event_id
    raise AssertionError("it ended before it began")


def cancelled_runs(server):
    return len(server.get("/v1/executions?status=CANCELLED").json["items"])


def test_hanging_up_cancels_a_modern_call(mcp, server):
    before = cancelled_runs(server)
    connection, answer = mcp.open(slow_call(mcp))
    read_until_begun(answer)
    answer.close()
    connection.close()
    wait_until(lambda: cancelled_runs(server) > before)


def test_a_cancelled_legacy_call_ends_without_an_answer(session, server):
    before = cancelled_runs(server)
    message = slow_call(session)
    connection, answer = session.open(message)
    read_until_begun(answer)
    session.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                  "params": {"requestId": message["id"], "reason": "enough"}})
    assert list(events_of(answer)) == []
    connection.close()
    assert cancelled_runs(server) > before


def test_another_session_cannot_cancel(session, server):
    message = session.message("tools/call", {
        "name": "pml_execute_code", "arguments": {**CLEAR, "language": "python", "code":
            "import time\nprint('begun', flush=True)\ntime.sleep(1)\nreturn 'done'"}},
        {"progressToken": 1})
    connection, answer = session.open(message)
    read_until_begun(answer)
    Session(server).send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                          "params": {"requestId": message["id"]}})
    *_, (_, last) = events_of(answer)
    connection.close()
    assert last["result"]["structuredContent"]["result"] == "done"


def test_a_legacy_client_comes_back_for_the_answer(session, server):
    """Losing the connection is not cancelling: the rest is under the id of the last event."""
    message = session.message("tools/call", {
        "name": "pml_execute_code", "arguments": {**CLEAR, "language": "python", "code":
            "import time\nprint('begun', flush=True)\ntime.sleep(1)\nreturn 'kept'"}},
        {"progressToken": 1})
    connection, answer = session.open(message)
    last_id = read_until_begun(answer)
    answer.close()
    connection.close()
    again = http.client.HTTPConnection(server.host, server.port, timeout=30)
    again.request("GET", "/mcp", None, {"Accept": "text/event-stream", "Last-Event-ID": last_id,
                                        "Mcp-Session-Id": session.id})
    *_, (_, last) = events_of(again.getresponse())
    again.close()
    assert last["id"] == message["id"]
    assert last["result"]["structuredContent"]["result"] == "kept"


def test_equal_ids_in_flight_get_their_own_answers(server):
    """There are clients that call every request 1."""
    peer = Session(server)
    seen = {}

    def ask(value):
        _, _, messages = peer.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "pml_execute_code", "arguments": {"code": f"return {value}"}}})
        seen[value] = messages[-1]["result"]["structuredContent"]["result"]

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(5)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert seen == {n: n for n in range(5)}


def test_a_trace_goes_on_through_meta(tmp_path):
    spans = tmp_path / "spans.jsonl"
    with serve(env={"RETORT_TELEMETRY_SPAN_FILE": str(spans)}) as traced:
        Modern(traced).call("pml_execute_code", code="return 1", _meta={
            "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
    assert "0af7651916cd43dd8448eb211c80319c" in spans.read_text()


def test_the_server_stops_while_somebody_listens():
    with serve() as one:
        peer = Modern(one)
        connection, answer = peer.open(peer.message("subscriptions/listen", {"notifications": {}}))
        stream = events_of(answer)
        _, first = next(stream)
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert one.stop(20) == 0
        _, last = next(stream)
        assert last["result"]["resultType"] == "complete"
        connection.close()


def test_capabilities_of_the_client_are_needed(server):
    peer = Modern(server)
    message = peer.message("tools/list")
    del message["params"]["_meta"][CAPABILITIES]
    status, _, (answer,) = peer.send(message)
    assert (status, answer["error"]["code"]) == (400, -32602)
