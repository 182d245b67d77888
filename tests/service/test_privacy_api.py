# SPDX-License-Identifier: Apache-2.0
"""POST /v1/privacy/scan and /mask: personal data in a text or a JSON value; nothing is kept."""

import pytest

TEXT = "größe 🎈 ann@example.org, card 4111 1111 1111 1111"


def scan(server, **body):
    reply = server.post("/v1/privacy/scan", body)
    assert reply.status == 200, reply.body
    return reply.json


def mask(server, **body):
    reply = server.post("/v1/privacy/mask", body)
    assert reply.status == 200, reply.body
    return reply.json


def test_positions_are_in_code_points(server):
    found = scan(server, text=TEXT)
    assert [(s["type"], TEXT[s["start"]:s["end"]]) for s in found["spans"]] == [
        ("EMAIL", "ann@example.org"), ("CREDIT_CARD", "4111 1111 1111 1111")]
    assert found["count"] == 2 and found["counts"] == {"EMAIL": 1, "CREDIT_CARD": 1}
    assert all(0.5 <= s["score"] <= 1 for s in found["spans"])


def test_a_value_is_looked_through_string_by_string(server):
    value = {"a/b": ["x", "é ann@example.org"], "id": "bob@example.org", "n": 4111111111111111}
    found = scan(server, value=value, exempt=["id"])
    assert [(s["path"], s["start"], s["end"]) for s in found["spans"]] == [("/a~1b/1", 2, 17)]
    assert scan(server, value=None)["spans"] == []


def test_types_scores_and_own_patterns(server):
    assert scan(server, text=TEXT, types=["CREDIT_CARD"])["counts"] == {"CREDIT_CARD": 1}
    assert scan(server, text=TEXT, min_score={"EMAIL": 1})["counts"] == {"CREDIT_CARD": 1}
    found = scan(server, text="badge B-1234", patterns={"BADGE": r"B-\d{4}"})
    assert [(s["type"], s["start"], s["end"]) for s in found["spans"]] == [("BADGE", 6, 12)]
    assert mask(server, text="badge B-1234", patterns={"BADGE": r"B-\d{4}"})["text"] == "badge [BADGE_REDACTED]"


@pytest.mark.parametrize("mode, wanted", [
    ("redact", "[EMAIL_REDACTED] [EMAIL_REDACTED]"), ("tokens", "[EMAIL_1] [EMAIL_2]"),
    ("partial", "a***@example.org a***@example.org")])
def test_the_modes(server, mode, wanted):
    text = "ann@example.org ann@example.org"
    assert mask(server, text=text, mode=mode) == {"text": wanted, "count": 2, "counts": {"EMAIL": 2}}


def test_a_value_keeps_its_shape_and_its_numbers(server):
    reply = server.post("/v1/privacy/mask", {"value": {"to": ["ann@example.org", "ann@example.org"], "n": 1},
                                             "mode": "tokens", "stable": True})
    assert reply.json["value"] == {"to": ["[EMAIL_1]", "[EMAIL_1]"], "n": 1}
    assert set(reply.json) == {"value", "count", "counts"} and b"ann@" not in reply.body
    assert mask(server, value={"ann@example.org": 1}, keys=True)["value"] == {"[EMAIL_REDACTED]": 1}


@pytest.mark.parametrize("body, said", [
    ({}, "either 'text' or 'value'"), ({"text": "a", "value": 1}, "either 'text' or 'value'"),
    ({"text": 5}, "text"), ({"text": "a", "types": ["SHOES"]}, "SHOES"), ({"text": "a", "types": [1]}, "types"),
    ({"text": "a", "min_score": 7}, "min_score"), ({"text": "a", "min_score": {"SHOES": 1}}, "SHOES"),
    ({"text": "a", "patterns": {"A": "("}}, "pattern A"), ({"text": "a", "patterns": {"EMAIL": "a"}}, "EMAIL"),
    ({"text": "a", "exempt": [1]}, "exempt"), ({"text": "a", "words": 1}, "words")])
def test_what_is_wrong_is_named(server, body, said):
    for path in ("/v1/privacy/scan", "/v1/privacy/mask"):
        reply = server.post(path, body)
        assert reply.status == 400 and said in reply.json["error"]["message"], reply.body


def test_modes_and_sizes_have_limits(server):
    for mode in ("off", "maybe"):
        reply = server.post("/v1/privacy/mask", {"text": "a", "mode": mode})
        assert reply.status == 400 and "redact, tokens or partial" in reply.json["error"]["message"]
    assert server.post("/v1/privacy/scan", {"text": "a", "mode": "redact"}).status == 400
    many = {"text": "ann@example.org " * 110_000}
    reply = server.post("/v1/privacy/scan", many)
    assert reply.status == 413 and "100000" in reply.json["error"]["message"]
    assert mask(server, **many)["count"] == 110_000


def test_a_pattern_that_takes_too_long_ends(server):
    reply = server.post("/v1/privacy/scan", {"text": ("a" * 59 + "b") * 1500,
                                             "patterns": {"SLOW": "(?:a{1,20}){1,6}(?:bc|bd)"}})
    assert reply.status == 413 and "SLOW takes too long" in reply.json["error"]["message"]
