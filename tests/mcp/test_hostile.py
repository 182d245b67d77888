# SPDX-License-Identifier: Apache-2.0
"""Servers that die, flood, lie or say nothing: their callers get an error, nobody else notices."""

import time

import pytest
from driving import eventually


@pytest.fixture
def client(clients, rogue):
    """One rogue, and a good server that must stay good."""
    client = clients({"bad": rogue(), "good": rogue()})
    client.list("bad"), client.list("good")
    yield client
    assert client.call("good:echo", x=1)["value"] == {"x": 1}


def test_one_that_dies_in_a_call_is_an_error_with_its_last_words(client):
    error = client.call("bad:die")["error"]
    assert error["code"] == "unavailable"
    assert error["text"] == ("MCP server bad: it is gone, and whether the call took effect is not known: "
                             "it ended with status 3; it said: Traceback: it was ?[31mtoo much?[0m")


def test_the_next_call_starts_it_again(client):
    client.call("bad:die")
    assert client.call("bad:echo", x=1)["value"] == {"x": 1}
    assert client.event() == {"event": "change", "server": "bad"}  # it may be another one now
    assert client.health("bad")["restarts"] == 1


def test_one_that_is_killed_fails_all_its_calls_at_once(client):
    tickets = [client.start("bad:never") for _ in range(5)]
    for i in range(5):  # each call has a thread of its own: all of them are with the server by now
        assert client.call("bad:echo", x=i)["value"] == {"x": i}
    kill = client.start("bad:kill")
    for ticket in [*tickets, kill]:
        answer = client.result(ticket)
        assert "signal 9" in answer["error"]["text"] and answer["ms"] < 5000


def test_one_that_never_answers_costs_its_caller_the_time_it_gave(client):
    ticket = client.start("bad:never", {"deadline_ms": 700})
    answers = [client.call("bad:echo", x=i) for i in range(3)]
    assert [a["value"]["x"] for a in answers] == [0, 1, 2]
    answer = client.result(ticket)
    assert answer["error"]["code"] == "timeout" and 600 < answer["ms"] < 3000
    assert len(client.call("bad:cancelled")["value"]["ids"]) == 1


def test_a_flood_is_cut_off(client):
    error = client.call("bad:flood")["error"]
    assert error["code"] == "limit" and "flooded" in error["text"]
    assert client.call("bad:echo", x=1)["value"] == {"x": 1}


def test_a_line_without_end_is_cut_off(client):
    error = client.call("bad:huge_line")["error"]
    assert error["code"] == "limit" and "64 MiB" in error["text"]


def test_what_it_writes_to_standard_error_is_drained(client):
    assert client.call("bad:flood_errors", mb=50)["value"] == "still here"


def test_lines_that_are_no_messages_are_skipped_and_counted(client):
    assert client.call("bad:garbage")["value"] == "after garbage"
    assert client.health("bad")["broken_messages"] == 5


@pytest.mark.parametrize("tool", ["invalid_utf8", "broken_result", "no_object"])
def test_an_answer_that_is_broken_is_told_at_once(client, tool):
    answer = client.call(f"bad:{tool}")
    assert answer["error"]["code"] == "invalid" and answer["ms"] < 2000


def test_answers_to_what_nobody_asked_are_ignored(client):
    assert client.call("bad:wrong_ids")["value"] == "right"
    assert client.call("bad:twice")["value"] == "first"
    assert client.call("bad:echo", x=2)["value"] == {"x": 2}


def test_an_error_without_an_id_is_for_the_only_one_who_asked(client):
    error = client.call("bad:null_id")["error"]
    assert error["text"] == "MCP server bad: it answers: lost the?[31m id ?gnp (-32603)"


def test_bytes_that_drip_do_not_outlast_the_deadline(client):
    answer = client.call("bad:drip", {"deadline_ms": 1000})
    assert answer["error"]["code"] == "timeout" and answer["ms"] < 3000


def test_one_that_does_not_read_does_not_hold_its_callers(client):
    client.call("bad:deaf")
    tickets = [client.start("bad:echo", {"deadline_ms": 800}, x="y" * 3_000_000) for _ in range(4)]
    assert [client.result(t)["error"]["code"] for t in tickets] == ["timeout"] * 4


def test_closing_does_not_wait_for_calls_that_hang(clients, rogue):
    client = clients({"bad": rogue(), "slow": rogue("--mute")})
    client.list("bad")
    tickets = [client.start("bad:never"), client.start("slow:echo")]
    time.sleep(0.3)
    for server in ("bad", "slow"):
        assert "error" not in client.result(client.send("close", server=server))
    assert [client.result(t)["error"]["code"] for t in tickets] == ["unavailable"] * 2


# ---- servers that cannot be had ----

def test_one_that_cannot_start_is_told_with_its_reason_and_is_not_hammered(clients, rogue, tmp_path):
    client = clients({"bad": rogue("--die-at-start"), "good": rogue()})
    first = client.call("bad:echo")
    assert "cannot find my configuration" in first["error"]["text"]
    second = client.call("bad:echo")
    assert second["ms"] < 100 and "tried again in" in second["error"]["text"]
    assert client.health("bad")["status"] == "down"
    assert client.call("good:echo", x=1)["value"] == {"x": 1}
    assert eventually(lambda: "tried again in 2 s" in client.call("bad:echo")["error"]["text"], 5)


def test_a_program_that_does_not_exist_is_named(clients):
    client = clients({"a": {"command": "no-such-program-xyz"}, "b": {"command": "/no/such/file"},
                      "c": {"command": "true", "cwd": "/no/such/folder"}})
    assert "no program no-such-program-xyz on its PATH" in client.call("a:x")["error"]["text"]
    assert "/no/such/file: No such file" in client.call("b:x")["error"]["text"]
    assert "enter its folder" in client.call("c:x")["error"]["text"]


def test_one_that_is_slow_to_start_holds_nobody_longer_than_they_want(clients, rogue):
    client = clients({"bad": rogue("--mute", "--probe=silent"), "good": rogue()})
    slow = client.start("bad:echo", {"deadline_ms": 800})
    assert client.call("good:echo", x=1)["value"] == {"x": 1}
    answer = client.result(slow)
    assert answer["error"]["code"] == "timeout" and answer["ms"] < 2000


def test_a_tool_of_somebody_else_is_not_asked_for(client):
    assert client.call("bad:")["error"]["code"] == "not_found"


# ---- limits and health ----

def test_a_tool_is_called_ten_times_a_second_and_waits_its_turn(client):
    began = time.monotonic()
    tickets = [client.start("good:echo", x=i) for i in range(25)]
    assert all("value" in client.result(t) for t in tickets)
    assert 1.9 < time.monotonic() - began < 5


def test_a_turn_that_would_come_too_late_is_refused_at_once(client):
    tickets = [client.start("good:echo", {"deadline_ms": 500}) for _ in range(15)]
    errors = [r["error"] for t in tickets if "error" in (r := client.result(t))]
    assert [e["code"] for e in errors] == ["too_many"] * 5
    assert "rate_limit" in errors[0]["text"]
    assert "value" in client.call("good:meta")  # each tool has its own
    time.sleep(1)


def test_the_limit_is_configured_for_each_server(clients, rogue):
    client = clients({"free": rogue(rate_limit=0), "tight": rogue(rate_limit=1)})
    client.list("free")
    began = time.monotonic()
    tickets = [client.start("free:echo") for _ in range(50)]
    assert all("value" in client.result(t) for t in tickets) and time.monotonic() - began < 1
    client.call("tight:echo")
    assert client.call("tight:echo", {"deadline_ms": 300})["error"]["code"] == "too_many"


def test_health_is_measured_now_and_then(clients, rogue):
    client = clients({"a": rogue()}, env={"CHECK_INTERVAL_MS": "200"})
    client.list("a")
    health = eventually(lambda: (h := client.health("a")).get("latency_ms") and h)
    assert health["status"] == "healthy" and health["latency_ms"] < 1000 and health["connected"]


def test_one_that_does_not_answer_to_its_name_is_down_and_started_again_when_needed(clients, rogue):
    client = clients({"a": rogue("--no-ping")}, env={"CHECK_INTERVAL_MS": "200"})
    client.list("a")
    health = eventually(lambda: (h := client.health("a"))["status"] == "down" and h, 30)
    assert "in time" in health["error"]
    assert client.call("a:echo", x=1)["value"] == {"x": 1}
