# SPDX-License-Identifier: Apache-2.0
"""/api/agent/execute-code, with its exact shapes."""

import json

import pytest


def execute(server, **body):
    return server.post("/api/agent/execute-code", body)


def test_the_vector_of_the_original(server):
    reply = execute(server, code='import json\nprint(json.dumps({"hello":"world"}))')
    assert reply.status == 200
    answer = reply.json
    assert set(answer) == {"success", "executionId", "output", "metadata", "message"}
    assert answer["success"] is True and answer["output"] == {"hello": "world"}
    assert answer["executionId"].startswith("exec_")
    meta = answer["metadata"]
    assert set(meta) == {"execTime", "memoryUsed", "piiDetected", "piiTypes", "cost", "language"}
    assert meta["cost"] == pytest.approx(0.000002) and meta["language"] == "python"
    assert meta["memoryUsed"] > 0 and 0 < meta["execTime"] < 30


@pytest.mark.parametrize("language", ["javascript", "nodejs"])
def test_node_by_both_names(server, language):
    reply = execute(server, code="console.log(JSON.stringify({n: inputs.x * 2}))", language=language,
                    inputs={"x": 21})
    assert reply.json["output"] == {"n": 42} and reply.json["metadata"]["language"] == language


def test_no_output_is_success(server):
    assert execute(server, code="x = 1").json["output"] == {"result": "success"}


def test_text_that_is_no_json_is_an_output_all_the_same(server):
    answer = execute(server, code="print('plain text')").json
    assert answer["success"] and "plain text" in json.dumps(answer["output"])


@pytest.mark.parametrize("code", ["raise ValueError('broken')", "import sys; sys.exit(3)"])
def test_failing_code_is_no_success(server, code):
    answer = execute(server, code=code).json
    assert answer["success"] is False and answer["output"]["error"]


@pytest.mark.parametrize("body, error", [
    ({}, "Code is required"), ({"code": "   "}, "Code is required"), ({"code": 5}, "Code is required"),
    ({"code": "puts 1", "language": "ruby"}, "Invalid language"),
])
def test_bad_requests_have_their_words(server, body, error):
    reply = execute(server, **body)
    assert reply.status == 400 and reply.json["success"] is False
    assert reply.json["error"] == error and reply.json["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff", b'"x"', b"1" * 5000])
def test_a_broken_body_is_never_a_crash(server, body):
    reply = server.request("POST", "/api/agent/execute-code", body, {"Content-Type": "application/json"})
    assert reply.status == 400 and reply.json["success"] is False
    assert set(reply.json) >= {"success", "error", "message"}


def test_runs_are_grouped_by_their_session(server):
    run = execute(server, code="print(1)", sessionId="conversation-7").json["executionId"]
    listed = server.get("/v1/executions?session_id=conversation-7").json["items"]
    assert [row["id"] for row in listed] == [run]
