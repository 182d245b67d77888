# SPDX-License-Identifier: Apache-2.0
"""Personal data in the spine: masked before code sees it, masked again in all that comes out."""

import json
import pathlib

import pytest

PERSON = {"name": "John Doe", "email": "john@example.com", "ssn": "123-45-6789"}
OTHERS = {"phone": "555-123-4567", "cc": "4111 1111 1111 1111", "addr": "123 Main Street"}


def test_the_agent_surface_redacts_both_ways(server):
    reply = server.post("/api/agent/execute-code", {
        "code": "import json\nprint(json.dumps({'seen': inputs, 'made': 'mail ' + 'eve' + '@' + 'example.org'}))",
        "inputs": {**PERSON, **OTHERS}}).json
    seen = reply["output"]["seen"]
    assert seen == {"name": "John Doe", "email": "[EMAIL_REDACTED]", "ssn": "[SSN_REDACTED]",
                    "phone": "[PHONE_REDACTED]", "cc": "[CREDITCARD_REDACTED]",
                    "addr": "[ADDRESS_REDACTED]"}
    assert reply["output"]["made"] == "mail [EMAIL_REDACTED]"
    assert reply["metadata"]["piiDetected"] is True
    assert set(reply["metadata"]["piiTypes"]) == {"email", "ssn", "phone", "creditCard", "address"}
    record = server.get(f"/v1/executions/{reply['executionId']}").json["pii"]
    assert record["in_input"] and record["in_output"] and record["masked"]
    assert "credit_card" in record["types"]


def test_tokens_stand_for_values_and_come_back_only_when_asked(server):
    body = {"code": "return {'saw': inputs['email'], 'is_token': inputs['email'].startswith('[EMAIL_')}",
            "input": PERSON, "privacy": "tokens"}
    answer = server.post("/v1/executions", body).json
    assert answer["result"] == {"saw": "[EMAIL_1]", "is_token": True}
    assert answer["pii"]["input"] == 2 and set(answer["pii"]["types"]) == {"email", "ssn"}
    back = server.post("/v1/executions", {**body, "privacy": {"mode": "tokens", "detokenize": True}}).json
    assert back["result"]["saw"] == "john@example.com" and back["result"]["is_token"]


def test_everything_that_comes_out_is_masked(server):
    code = ("import os, sys\nwho = 'ann' + '@' + 'example.org'\nprint(who)\nprint(who, file=sys.stderr)\n"
            "os.makedirs('out', exist_ok=True)\nopen('out/a.txt', 'w').write(who)\nraise ValueError(who)")
    answer = server.post("/v1/executions", {"code": code, "privacy": "redact"}).json
    text = json.dumps(answer)
    assert "ann@example.org" not in text and text.count("[EMAIL_REDACTED]") >= 3
    file = server.get(f"/v1/artifacts/{answer['artifacts'][0]['handle']}/content?download=true")
    assert file.body == b"[EMAIL_REDACTED]"


def test_a_stream_tells_nothing_before_it_is_masked(server):
    code = "print('ann' + '@' + 'example.org', flush=True)"
    events = list(server.events("POST", "/v1/executions", {"code": code, "privacy": "redact"}))
    assert ("stdout", {"text": "[EMAIL_REDACTED]\n"}) in events
    assert "ann@example.org" not in json.dumps(events)


def test_raw_personal_data_is_not_cached(server):
    body = {"code": "return 'write to ann' + '@' + 'example.org'", "cache": "use"}
    assert not any(server.post("/v1/executions", body).json["cached"] for _ in range(2))
    masked = {**body, "privacy": "redact"}
    assert [server.post("/v1/executions", masked).json["cached"] for _ in range(2)] == [False, True]


def test_the_operator_can_switch_it_off_and_is_warned(serving):
    with serving(env={"ENABLE_PII_PROTECTION": "false"}) as server:
        reply = server.post("/api/agent/execute-code", {
            "code": "import json; print(json.dumps(inputs))", "inputs": PERSON}).json
        assert reply["output"] == PERSON
        assert "privacy.enabled is false" in server.log_text()


@pytest.mark.parametrize("privacy", ["maybe", 5, {"mode": "x"}, {}, []])
def test_a_wrong_mode_is_refused(server, privacy):
    reply = server.post("/v1/executions", {"code": "1", "privacy": privacy})
    assert reply.status == 400 and "privacy" in reply.json["error"]["message"]


def test_values_must_fit_their_schemas(server):
    body = {"code": "return inputs['n'] * 2", "input": {"n": 21},
            "input_schema": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}},
            "output_schema": {"type": "integer", "maximum": 50}}
    assert server.post("/v1/executions", body).json["result"] == 42
    wrong = server.post("/v1/executions", {**body, "input": {"n": "x"}}).json
    assert wrong["status"] == "FAILED" and wrong["error"]["name"] == "INPUT_VALIDATION_ERROR"
    assert "/n" in wrong["error"]["message"]
    large = server.post("/v1/executions", {**body, "input": {"n": 30}}).json
    assert large["error"]["name"] == "OUTPUT_VALIDATION_ERROR" and large["result"] is None
    kpis = server.get("/v1/kpis").json
    assert kpis["validations"] >= 3 and kpis["validation_failures"] >= 2
    broken = server.post("/v1/executions", {**body, "input_schema": {"type": 5}})
    assert broken.status == 400 and "input_schema" in broken.json["error"]["message"]


def test_validation_without_running(server):
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    good = server.post("/v1/validate", {"code": "return 1", "input_schema": schema, "input": {"n": 1}}).json
    assert good["valid"] and good["errors"] == [] and good["safe"]
    bad = server.post("/v1/validate", {"code": "import os", "input_schema": schema, "input": {"n": "x"}}).json
    assert not bad["valid"] and "/n" in bad["errors"][0] and not bad["safe"]
    assert bad["risks"][0]["line"] == 1
    broken = server.post("/v1/validate", {"code": "return 1", "output_schema": {"type": 5}}).json
    assert not broken["valid"] and "output_schema" in broken["errors"][0]


def test_a_policy_says_what_a_call_does_not(server):
    body = {"code": "return inputs", "input": {"to": "ann@example.org"}, "policy": {"privacy": "tokens"}}
    assert server.post("/v1/executions", body).json["result"] == {"to": "[EMAIL_1]"}
    assert server.post("/v1/executions", {**body, "privacy": "off"}).json["result"] == body["input"]
    bad = server.post("/v1/executions", {**body, "policy": {"privacy": "maybe"}})
    assert bad.status == 400 and "off redact tokens partial" in bad.json["error"]["message"]


def test_a_call_says_what_to_look_for(server):
    body = {"code": "return inputs", "input": ["ann@example.org", "555-123-4567", "badge B-1234"],
            "privacy": {"mode": "tokens", "types": ["PHONE"], "patterns": {"BADGE": r"B-\d{4}"}}}
    answer = server.post("/v1/executions", body).json
    assert answer["result"] == ["ann@example.org", "[PHONE_1]", "badge [BADGE_1]"]
    assert set(answer["pii"]["types"]) == {"phone", "BADGE"}
    record = server.get(f"/v1/executions/{answer['id']}").json["pii"]
    assert record["counts"] == {"input": {"phone": 1, "BADGE": 1}, "output": {}}
    body["privacy"]["detokenize"] = True
    assert server.post("/v1/executions", body).json["result"] == body["input"]
    body["privacy"]["types"] = ["SHOES"]
    assert server.post("/v1/executions", body).status == 400


def test_what_went_in_and_came_out_is_counted_by_type(server):
    answer = server.post("/v1/executions", {
        "code": "return [inputs, 'eve' + '@' + 'example.org']", "privacy": "redact",
        "input": ["ann@example.org", "bob@example.org", "123-45-6789"]}).json
    assert answer["pii"]["input"] == 3 and answer["pii"]["output"] == 1
    record = server.get(f"/v1/executions/{answer['id']}").json["pii"]
    assert record["counts"] == {"input": {"email": 2, "ssn": 1}, "output": {"email": 1}}
    assert record["types"] == ["email", "ssn"] and record["masked"]
    metrics = server.get("/metrics").text
    assert 'retort_pii_detections_total{type="email"}' in metrics


def test_an_operator_can_require_it_and_name_patterns(serving):
    with serving("--privacy.mode", "redact", "--privacy.required", "true",
                 "--privacy.patterns", r"BADGE=B-\d{4}") as server:
        body = {"code": "return inputs", "input": ["ann@example.org", "B-1234"]}
        assert server.post("/v1/executions", body).json["result"] == ["[EMAIL_REDACTED]", "[BADGE_REDACTED]"]
        refused = server.post("/v1/executions", {**body, "privacy": "off"})
        assert refused.status == 403 and "privacy.required" in refused.json["error"]["message"]
        narrow = {**body, "privacy": {"mode": "tokens", "types": ["PHONE"], "min_score": 1}}
        assert server.post("/v1/executions", narrow).json["result"] == ["[EMAIL_1]", "[BADGE_1]"]


def test_a_session_keeps_its_tokens_and_so_does_its_branch(server):
    tokens = {"mode": "tokens", "detokenize": True}
    one = server.post("/v1/sessions", {"language": "python"}).json["id"]
    server.run("who = inputs", input="ann@example.org", privacy="tokens", session_id=one)
    two = server.post(f"/v1/sessions/{one}/branch", {}).json["id"]
    server.delete(f"/v1/sessions/{one}")
    assert server.run("return who", privacy="tokens", session_id=two)["result"] == "[EMAIL_1]"
    assert server.run("return who", privacy=tokens, session_id=two)["result"] == "ann@example.org"
    unknown = server.post("/v1/executions", {"code": "return '[EMAIL_' + '9]'", "privacy": tokens})
    assert unknown.status >= 400 and "[EMAIL_9]" in unknown.json["error"]["message"]
