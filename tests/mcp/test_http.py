# SPDX-License-Identifier: Apache-2.0
"""The client and an HTTP endpoint, in both eras: sessions, streams, and servers that misbehave."""

import socket
import time

import pytest
from driving import eventually
from web import OldWeb, Web


@pytest.fixture
def webs():
    made = []

    def make(**more):
        made.append(Web(**more))
        return made[-1]

    yield make
    for web in made:
        web.close()


@pytest.fixture(params=["legacy", "modern"])
def web(request, webs):
    return webs(modern=request.param == "modern")


@pytest.fixture
def client(clients, web):
    return clients({"a": {"url": web.url}})


@pytest.fixture
def legacy(webs, clients):
    web = webs()
    return web, clients({"a": {"url": web.url}})


@pytest.fixture
def modern(webs, clients):
    web = webs(modern=True)
    return web, clients({"a": {"url": web.url}})


def code_and_text(answer):
    return answer["error"]["code"], answer["error"]["text"]


# ---- the two eras ----

def test_a_legacy_session_is_begun_kept_and_ended(legacy):
    web, client = legacy
    assert client.call("a:x")["value"] == "called"
    [call] = web.seen("tools/call")
    assert call.headers["Mcp-Session-Id"] == "s-1"
    assert call.headers["MCP-Protocol-Version"] == "2025-11-25"
    assert call.headers["Mcp-Method"] is None
    assert call.headers["Accept"] == "application/json, text/event-stream"
    [hello] = web.seen("initialize")
    assert hello.headers["Mcp-Session-Id"] is None and hello.headers["MCP-Protocol-Version"] is None
    client.close()
    [end] = web.seen("DELETE")
    assert end.headers["Mcp-Session-Id"] == "s-1"


def test_modern_requests_carry_their_headers_and_no_session(modern):
    web, client = modern
    assert client.call("a:x", )["value"] == "called"
    [call] = web.seen("tools/call")
    assert call.headers["Mcp-Method"] == "tools/call" and call.headers["Mcp-Name"] == "x"
    assert call.headers["MCP-Protocol-Version"] == "2026-07-28"
    assert call.headers["Mcp-Session-Id"] is None
    client.close()
    assert not web.seen("initialize") and not web.seen("DELETE")


def test_configured_headers_are_sent_and_ours_stay_ours(webs, clients):
    web = webs()
    headers = {"Authorization": "Bearer ${T}", "X-Empty": "", "Accept": "nothing", "content-type": "x"}
    client = clients({"a": {"url": web.url, "headers": headers, "type": "http"}}, env={"T": "tok"})
    client.call("a:x")
    sent = web.seen("tools/call")[0].headers
    assert sent["Authorization"] == "Bearer tok" and sent["X-Empty"] == ""
    assert sent["Accept"].startswith("application/json") and sent["Content-Type"] == "application/json"


def test_a_forgotten_session_is_begun_again_and_the_call_repeated(legacy):
    web, client = legacy
    client.call("a:x")
    web.session = "s-2"
    assert client.call("a:x")["value"] == "called"
    assert [r.headers["Mcp-Session-Id"] for r in web.seen("tools/call")] == ["s-1", "s-1", "s-2"]
    assert len(web.seen("initialize")) == 2


def test_a_session_forgotten_in_words_is_begun_again_too(legacy):
    web, client = legacy
    client.call("a:x")
    told = []

    def forget(r):
        if r.headers["Mcp-Session-Id"] == "s-2":
            return r.text("again")
        told.append(1)
        web.session = "s-2"
        r.error(-32000, "Bad Request: No valid session ID provided", status=400)

    web.on["tools/call"] = forget
    assert client.call("a:x")["value"] == "again" and told == [1]


# ---- streams ----

def test_the_answer_may_come_in_a_stream_after_other_things(web, client):
    def stream(r):
        token = r.params["_meta"]["progressToken"]
        r.begin_events()
        r.event(raw=": hello\r\n\r\n")
        for i in (1, 2):
            r.event({"jsonrpc": "2.0", "method": "notifications/progress",
                     "params": {"progressToken": token, "progress": i}})
        r.event({"jsonrpc": "2.0", "id": 999, "result": {}})
        r.event(raw="event: message\rdata: " + '{"jsonrpc":"2.0",\r' + f'data: "id":{r.id},\r' +
                    'data: "result":{"content":[{"type":"text","text":"streamed"}]}}\r\r')

    web.on["tools/call"] = stream
    ticket = client.start("a:x", {"progress": True})
    assert client.result(ticket)["value"] == "streamed"
    assert client.progress[ticket] == [[1.0, 0.0, ""], [2.0, 0.0, ""]]


def test_a_stream_that_stays_open_after_the_answer_is_not_waited_for(web, client):
    def stream(r):
        r.begin_events()
        r.event(r.response("here"))
        web.stop.wait(20)

    web.on["tools/call"] = stream
    assert client.call("a:x")["ms"] < 2000


def test_a_lost_legacy_stream_is_taken_up_where_it_was_lost(legacy):
    web, client = legacy
    waiting = []

    def lose(r):
        waiting.append(r)
        r.begin_events()
        r.event(raw="retry: 300\ndata: \n\n", id="e1")

    def resume(r):
        if r.headers["Last-Event-ID"] == "e1":
            r.begin_events()
            return r.event(raw="data: \n\n", id="e2")
        if r.headers["Last-Event-ID"] == "e2":
            r.begin_events()
            return r.event(waiting[0].response("resumed"), id="e3")
        return r.reply(405)

    web.on["tools/call"], web.on["GET"] = lose, resume
    answer = client.call("a:x")
    assert answer["value"] == "resumed" and 500 < answer["ms"] < 3000


def test_a_lost_modern_stream_is_a_lost_call(modern):
    web, client = modern
    web.on["tools/call"] = lambda r: (r.begin_events(), r.event(raw="data: \n\n", id="e1"))
    code, text = code_and_text(client.call("a:x"))
    assert code == "unavailable" and "before it answered" in text
    assert len(web.seen("tools/call")) == 1 and not web.seen("GET")


def test_a_server_may_ask_back_in_a_legacy_stream(legacy):
    web, client = legacy

    def ask(r):
        r.begin_events()
        r.event({"jsonrpc": "2.0", "id": "q1", "method": "ping"})
        r.event({"jsonrpc": "2.0", "id": "q2", "method": "sampling/createMessage", "params": {}})
        eventually(lambda: len(web.seen(None)) == 2)
        r.event(r.response("answered"))

    web.on["tools/call"] = ask
    assert client.call("a:x")["value"] == "answered"
    first, second = [r.message for r in web.seen(None)]
    assert first == {"jsonrpc": "2.0", "id": "q1", "result": {}}
    assert second["error"]["code"] == -32601 and second["id"] == "q2"


def listen_for(web, client):
    streams = []

    def stream(r):
        streams.append(r)
        r.begin_events()
        if r.verb == "POST":
            r.event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {}})
        r.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}})
        web.stop.wait(20)

    web.on["GET"] = web.on["subscriptions/listen"] = stream
    client.list("a")
    assert client.event() == {"event": "change", "server": "a"}
    return streams[0]


def test_changes_are_heard_on_the_stream_of_a_legacy_session(legacy):
    web, client = legacy
    web.on["initialize"] = lambda r: r.result(
        {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}}},
        Mcp_Session_Id="s-1")
    assert listen_for(web, client).headers["Mcp-Session-Id"] == "s-1"


def test_changes_are_heard_by_a_modern_subscription(modern):
    web, client = modern
    web.on["server/discover"] = lambda r: r.result(
        {"resultType": "complete", "supportedVersions": ["2026-07-28"],
         "capabilities": {"tools": {"listChanged": True}}})
    assert listen_for(web, client).params["notifications"] == {"toolsListChanged": True}


# ---- calling off ----

def test_a_cancelled_legacy_call_is_called_off_by_a_message(legacy):
    web, client = legacy
    client.list("a")
    web.on["tools/call"] = lambda r: web.stop.wait(20)
    assert client.call("a:x", {"cancel_ms": 200})["error"]["code"] == "cancelled"
    assert eventually(lambda: web.seen("notifications/cancelled"))
    [off] = web.seen("notifications/cancelled")
    assert off.params["requestId"] == web.seen("tools/call")[0].id


def test_a_cancelled_modern_call_is_called_off_by_closing_its_stream(modern):
    web, client = modern
    client.list("a")
    noticed = []

    def wait(r):
        r.begin_events()
        r.handler.connection.settimeout(10)
        noticed.append(r.handler.connection.recv(1))

    web.on["tools/call"] = wait
    assert client.call("a:x", {"cancel_ms": 200})["error"]["code"] == "cancelled"
    assert eventually(lambda: noticed == [b""])
    assert not web.seen("notifications/cancelled")


def test_one_that_never_answers_costs_its_caller_the_time_it_gave(web, client):
    client.list("a")
    web.on["tools/call"] = lambda r: web.stop.wait(20)
    slow = client.start("a:x", {"deadline_ms": 600})
    assert client.list("a")["ms"] < 500
    answer = client.result(slow)
    assert answer["error"]["code"] == "timeout" and answer["ms"] < 3000


def test_bytes_that_drip_do_not_outlast_the_deadline(web, client):
    def drip(r):
        r.begin_events()
        while not web.stop.wait(0.1):
            r.event(raw="d")

    client.list("a")
    web.on["tools/call"] = drip
    assert client.call("a:x", {"deadline_ms": 600})["ms"] < 3000


def test_progress_moves_the_time_out_of_a_stream(webs, clients):
    web = webs()
    client = clients({"a": {"url": web.url, "timeout_ms": 600}})

    def slowly(r):
        r.begin_events()
        for i in range(5):
            time.sleep(0.3)
            r.event({"jsonrpc": "2.0", "method": "notifications/progress",
                     "params": {"progressToken": r.params["_meta"]["progressToken"], "progress": i}})
        r.event(r.response("at last"))

    web.on["tools/call"] = slowly
    assert client.call("a:x")["value"] == "at last"


# ---- misbehaviour ----

@pytest.mark.parametrize("status, code", [(500, "unavailable"), (503, "unavailable"), (429, "too_many"),
                                          (413, "limit"), (404, "not_found"), (418, "invalid")])
def test_an_http_error_is_an_error_that_names_it(webs, clients, status, code):
    web = webs(session=None)
    client = clients({"a": {"url": web.url}})
    client.list("a")
    web.on["tools/call"] = lambda r: r.reply(status, b"<html>no</html>", type="text/html")
    error = code_and_text(client.call("a:x"))
    assert error[0] == code and f"HTTP {status}" in error[1]


@pytest.mark.parametrize("status", [500, 502])
def test_a_server_in_trouble_is_no_old_server(webs, clients, status):
    web = webs()
    web.on["server/discover"] = lambda r: r.reply(status)
    error = code_and_text(clients({"a": {"url": web.url}}).call("a:x"))
    assert error[0] == "unavailable" and not web.seen("initialize")


def test_without_permission_we_are_told_what_to_do(webs, clients):
    web = webs()
    web.on["server/discover"] = lambda r: r.reply(401)
    code, text = code_and_text(clients({"a": {"url": web.url}}).call("a:x"))
    assert code == "denied" and "Authorization header" in text


def test_a_redirect_within_the_origin_is_followed(web, client):
    def move(r):
        return r.reply(308, Location="/mcp/") if r.path == "/mcp" else r.text("moved")

    web.on["tools/call"] = move
    assert client.call("a:x")["value"] == "moved"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_elsewhere_is_not_followed_and_credentials_stay_here(webs, clients, status):
    web, elsewhere = webs(), webs()
    client = clients({"a": {"url": web.url, "headers": {"Authorization": "secret"}}})
    client.list("a")
    web.on["tools/call"] = lambda r: r.reply(status, Location=elsewhere.url)
    code, text = code_and_text(client.call("a:x"))
    assert code == "denied" and elsewhere.url in text and elsewhere.requests == []


def test_redirects_in_circles_come_to_an_end(web, client):
    client.list("a")
    web.on["tools/call"] = lambda r: r.reply(307, Location="/mcp")
    assert "circles" in client.call("a:x")["error"]["text"]


@pytest.mark.parametrize("body", [b"", b"not json", b'{"jsonrpc":"2.0"', b"\xff\xfe", b"[]", b"null",
                                  b'{"jsonrpc":"2.0","id":12345,"result":{}}'])
def test_a_body_that_is_no_answer_is_an_error(web, client, body):
    client.list("a")
    web.on["tools/call"] = lambda r: r.reply(200, body)
    assert client.call("a:x")["error"]["code"] == "invalid"


def test_a_broken_result_is_an_error(web, client):
    client.list("a")
    web.on["tools/call"] = lambda r: r.reply(
        200, b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\xff"}]}}' % r.id)
    assert client.call("a:x")["error"]["code"] == "invalid"


def test_a_connection_lost_in_an_answer_is_an_error(web, client):
    def lose(r):
        r.handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{")
        r.handler.wfile.flush()
        r.handler.connection.shutdown(socket.SHUT_RDWR)
        r.handler.close_connection = True

    client.list("a")
    web.on["tools/call"] = lose
    assert client.call("a:x")["error"]["code"] == "unavailable"


def test_an_answer_that_is_too_long_is_cut_off(web, client):
    def endless(r):
        r.begin_events()
        while True:
            r.event(raw="data: " + "x" * (1 << 20))

    def endless_json(r):
        r.handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        while True:
            r.handler.wfile.write(b" " * (1 << 20))

    for misdeed in (endless, endless_json):
        web.on["tools/call"] = misdeed
        assert code_and_text(client.call("a:x")) == (
            "limit", "MCP server a: its answer is longer than 64 MiB")


def test_a_flood_is_cut_off(web, client):
    def flood(r):
        r.begin_events()
        line = 'data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n' * 1000
        while True:
            r.event(raw=line)

    web.on["tools/call"] = flood
    code, text = code_and_text(client.call("a:x"))
    assert code == "limit" and "floods" in text


def test_nobody_there_is_an_error_and_tried_again_later(clients):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        client = clients({"a": {"url": f"http://127.0.0.1:{s.getsockname()[1]}/mcp"}})
        code, text = code_and_text(client.call("a:x"))
    assert code == "unavailable" and "cannot be reached" in text
    assert "tried again" in client.call("a:x")["error"]["text"]


def test_a_large_answer_passes(web, client):
    web.on["tools/call"] = lambda r: r.text("x" * 30_000_000)
    assert client.call("a:x", {"brief": True})["value_size"] == 30_000_002


def test_calls_run_at_the_same_time(web, client):
    client.list("a")
    web.on["tools/call"] = lambda r: (time.sleep(0.5), r.text("ok"))
    began = time.monotonic()
    tickets = [client.start("a:x") for _ in range(8)]
    assert all(client.result(t)["value"] == "ok" for t in tickets) and time.monotonic() - began < 3


def test_headers_of_a_newer_list_are_learned_when_the_server_misses_them(modern):
    web, client = modern
    client.list("a")
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    web.on["tools/list"] = lambda r: r.result({"tools": [{"name": "x", "inputSchema": schema}]})
    web.on["tools/call"] = lambda r: (r.text(r.headers["Mcp-Param-Region"])
                                      if r.headers["Mcp-Param-Region"]
                                      else r.error(-32020, "header missing", status=400))
    assert client.call("a:x", region="Zürich")["value"] == "=?base64?WsO8cmljaA==?="


# ---- the transport of 2024 ----

@pytest.mark.parametrize("type", ["sse", "http"])
def test_a_server_of_2024_is_spoken_to(clients, type):
    web = OldWeb()
    client = clients({"a": {"url": web.url, "type": type, "headers": {"Authorization": "k"}}})
    assert len(client.list("a")["tools"]) == 2
    tickets = [client.start("a:x") for _ in range(5)]
    assert [client.result(t)["value"] for t in tickets] == ["of old"] * 5
    assert client.health("a")["protocol"] == "2024-11-05"
    post = web.seen("tools/call")[0]
    assert post.path == "/post?s=1" and post.headers["Authorization"] == "k"
    assert "closed its stream" in client.call("a:close")["error"]["text"]
    assert client.call("a:x")["value"] == "of old"
    client.close()
    web.close()


def test_a_server_of_2024_cannot_have_our_messages_sent_elsewhere(clients, webs):
    elsewhere = webs()
    web = OldWeb(address=elsewhere.url)
    client = clients({"a": {"url": web.url, "type": "sse"}})
    assert code_and_text(client.call("a:x"))[0] == "denied"
    assert elsewhere.requests == []
    client.close()
    web.close()
