# SPDX-License-Identifier: Apache-2.0
"""The client and a program over stdio: what a well-behaved one can rely on."""

import os
import pathlib
import time

import pytest
from driving import eventually

ERAS = {"legacy": [], "modern": ["--modern"]}


@pytest.fixture(params=ERAS)
def client(request, clients, rogue):
    return clients({"a": rogue(*ERAS[request.param])})


def test_a_call_gives_the_structured_result_and_the_content(client):
    answer = client.call("a:echo", x=[1, 2.50, "ü"])
    assert answer["value"] == {"x": [1, 2.5, "ü"]}
    assert answer["content"][0]["type"] == "text" and answer["is_error"] is False


def test_text_is_a_document_or_a_string(client):
    def value(*blocks, **more):
        return client.call("a:say", content=[{"type": "text", "text": b} if isinstance(b, str) else b
                                             for b in blocks], more=more)["value"]

    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    assert value('{"a": [1]}') == {"a": [1]}
    assert value(' [1, 2]\n') == [1, 2]
    assert value("{not json}") == "{not json}"
    assert value("007") == "007" and value("true") == "true"
    assert value("a", "b") == "a\nb"
    assert value() is None
    assert value("a", image) == [{"type": "text", "text": "a"}, image]
    assert value("shadow", structuredContent={"s": 1}) == {"s": 1}
    assert value("shadow", structuredContent=None) == "shadow"


def test_a_tool_that_fails_says_how(client):
    answer = client.call("a:fail")
    assert answer["is_error"] is True and answer["value"] == "it did not work"


def test_a_refusal_of_the_server_is_an_error_with_its_words(client):
    error = client.call("a:refuse", code=-32602, message="no such\ncolour \x1b[31m")["error"]
    assert error == {"code": "invalid",
                     "text": "MCP server a: it answers: no such colour ?[31m (-32602)"}


def test_calls_run_at_the_same_time(client):
    client.list("a")
    began = time.monotonic()
    tickets = [client.start("a:sleep", s=0.5) for _ in range(10)]
    assert all(client.result(t)["value"] == "slept" for t in tickets)
    assert time.monotonic() - began < 3


def test_progress_is_told_and_moves_the_time_out(clients, rogue):
    client = clients({"a": rogue(timeout_ms=800)})
    client.list("a")
    ticket = client.start("a:progress", {"progress": True}, steps=6, s=0.3)
    assert client.result(ticket)["value"] == "done"
    assert client.progress[ticket] == [[float(i), 6.0, f"step {i}"] for i in range(1, 7)]


def test_progress_does_not_move_a_deadline(client):
    client.list("a")
    ticket = client.start("a:progress", {"progress": True, "deadline_ms": 700}, steps=20, s=0.2)
    assert client.result(ticket)["error"]["code"] == "timeout"


def test_a_cancelled_call_is_called_off(client):
    client.list("a")
    answer = client.call("a:never", {"cancel_ms": 100})
    assert answer["error"]["code"] == "cancelled" and answer["ms"] < 2000
    assert len(client.call("a:cancelled")["value"]["ids"]) == 1


def test_the_trace_is_passed_on(client):
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert client.call("a:meta", {"traceparent": parent})["value"]["traceparent"] == parent


def test_modern_requests_say_who_asks(clients, rogue):
    client = clients({"a": rogue("--modern")})
    meta = client.call("a:meta")["value"]
    assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert meta["io.modelcontextprotocol/clientCapabilities"] == {}
    assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "retort"
    assert client.health("a")["protocol"] == "2026-07-28"


@pytest.mark.parametrize("probe", ["error", "silent", "die"])
def test_an_old_server_is_recognised_however_it_takes_the_probe(clients, rogue, probe):
    client = clients({"a": rogue(f"--probe={probe}")})
    assert client.call("a:echo", x=1)["value"] == {"x": 1}
    assert client.health("a")["protocol"] == "2025-11-25"


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18"])
def test_older_revisions_are_spoken(clients, rogue, version):
    client = clients({"a": rogue(f"--version={version}")})
    assert client.call("a:echo", x=1)["value"] == {"x": 1}
    assert client.health("a")["protocol"] == version


def test_a_revision_from_elsewhere_is_refused_by_name(clients, rogue):
    error = clients({"a": rogue("--version=1999-01-01")}).call("a:echo")["error"]
    assert error["code"] == "unsupported" and "1999-01-01" in error["text"]


def test_a_revision_can_be_insisted_on(clients, rogue):
    old = rogue("--probe=die", protocol_version="2025-06-18")
    new = rogue(protocol_version="2026-07-28")
    client = clients({"old": old, "new": new})
    assert client.call("old:echo", x=1)["value"] == {"x": 1}
    assert client.health("old")["protocol"] == "2025-06-18"
    assert client.call("new:echo")["error"]["code"] == "unsupported"


# ---- lists ----

def test_all_pages_are_read(clients, rogue):
    tools = clients({"a": rogue("--list=pages")}).list("a")["tools"]
    assert len(tools) == 100 and tools[99]["name"] == "a:t9_9"


@pytest.mark.parametrize("kind", ["null", "empty"])
def test_an_odd_end_of_the_list_is_an_end(clients, rogue, kind):
    assert len(clients({"a": rogue(f"--list={kind}")}).list("a")["tools"]) > 20


def test_a_list_without_end_is_an_error(clients, rogue):
    error = clients({"a": rogue("--list=endless")}).list("a")["error"]
    assert error["code"] == "limit" and "no end" in error["text"]


def test_tools_that_break_the_rules_are_left_out_and_the_others_stay(clients, rogue):
    client = clients({"a": rogue("--list=odd")})
    good, plain = client.list("a")["tools"]
    assert (good["name"], good["title"], good["flags"]) == ("a:good", "Kind", 1 | 4)
    assert good["output_schema"] == {"type": "object"} and good["version"] == "6.6.6"
    assert (plain["name"], plain["title"], plain["flags"]) == ("a:plain", "Plain", 32)
    health = client.health("a")
    assert (health["tools"], health["skipped_tools"]) == (2, 8)


def test_a_list_that_is_none_is_an_error(clients, rogue):
    assert "no array" in clients({"a": rogue("--list=wrong")}).list("a")["error"]["text"]


def test_changes_are_told_once_for_a_swarm(client):
    names = {t["name"] for t in client.list("a")["tools"]}
    client.call("a:change", times=500)
    assert client.event() == {"event": "change", "server": "a"}
    assert {t["name"] for t in client.list("a")["tools"]} - names == {"a:late"}
    time.sleep(1.5)
    assert client.events.qsize() <= 1


# ---- the process ----

def test_it_gets_the_environment_it_was_given_and_no_more(clients, rogue, tmp_path):
    config = rogue("x y", cwd=str(tmp_path), env={"TOKEN": "${SECRET_OF_OURS}", "PLAIN": "1"})
    client = clients({"a": config}, env={"SECRET_OF_OURS": "s3cret", "OTHER_SECRET": "x",
                                         "SHELL": "() { :;}"})
    got = client.call("a:environment")["value"]
    assert set(got["env"]) <= {"HOME", "LANG", "LOGNAME", "PATH", "TERM", "USER", "TOKEN", "PLAIN",
                               "LC_CTYPE"}  # the last is Python's own doing
    assert (got["env"]["TOKEN"], got["env"]["PLAIN"]) == ("s3cret", "1")
    assert got["cwd"] == os.path.realpath(tmp_path) and "x y" in got["args"]
    assert got["group"] == got["pid"]
    assert len(got["descriptors"]) <= 5, got["descriptors"]


def gone(pid):
    return not pathlib.Path("/proc", str(pid)).exists()


def test_it_ends_with_all_it_has_started(clients, rogue, left_on_host):
    marker = f"36{os.getpid()}"
    client = clients({"a": rogue()})
    pid = client.call("a:environment")["value"]["pid"]
    client.call("a:children", marker=marker)
    began = time.monotonic()
    assert client.close() == (0, "")
    assert time.monotonic() - began < 3
    assert gone(pid) and not left_on_host(f"sleep {marker}")


def test_one_that_does_not_want_to_end_is_ended(clients, rogue):
    client = clients({"a": rogue("--stay")})
    pid = client.call("a:environment")["value"]["pid"]
    began = time.monotonic()
    assert client.close() == (0, "")
    assert 3 < time.monotonic() - began < 10 and gone(pid)


def test_it_does_not_outlive_us(clients, rogue):
    client = clients({"a": rogue("--stay")})
    pid = client.call("a:environment")["value"]["pid"]
    client.process.kill()
    assert eventually(lambda: gone(pid))
    client.process.stdin.close()


def test_servers_that_nobody_needs_are_not_started(clients, rogue, left_on_host):
    marker = f"unneeded-{os.getpid()}"
    client = clients({"a": rogue(f"--{marker}"), "b": rogue()})
    client.call("b:echo")
    assert not left_on_host(f"--{marker}", within=0)
    health = client.health("a")
    assert (health["status"], health["error"]) == ("down", "it has not been needed yet")


# ---- what servers ask back ----

def test_what_a_server_asks_back_is_answered_properly(clients, rogue):
    client = clients({"a": rogue()})
    methods = ["ping", "roots/list", "sampling/createMessage", "elicitation/create", "x/y"]
    answers = client.call("a:ask_back", methods=methods)["value"]["answers"]
    by_id = {a["id"]: a for a in answers}
    assert by_id["back-0"]["result"] == {} and by_id["back-1"]["result"] == {"roots": []}
    assert [by_id[f"back-{i}"]["error"]["code"] for i in (2, 3, 4)] == [-32601] * 3


def test_input_that_nobody_can_give_is_an_error_that_says_so(clients, rogue):
    error = clients({"a": rogue("--modern")}).call("a:want_input")["error"]
    assert error["code"] == "unsupported" and "elicitation/create" in error["text"]


# ---- amounts ----

@pytest.mark.parametrize("tool, args", [("big", {"bytes": 30_000_000}),
                                        ("big_structured", {"rows": 500_000})])
def test_tens_of_megabytes_pass(client, tool, args):
    answer = client.call(f"a:{tool}", {"brief": True}, **args)
    assert answer["value_size"] > 15_000_000


def test_large_arguments_pass(client):
    answer = client.call("a:echo", {"brief": True}, x="y" * 10_000_000)
    assert answer["value_size"] > 10_000_000
