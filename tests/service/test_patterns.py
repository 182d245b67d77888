# SPDX-License-Identifier: Apache-2.0
"""Patterns: kept, run with parameters, chained, counted; and the agent toolkit's other calls."""

import json
import subprocess
import sys

import pytest

from house import ROOT, serve

CSV = "name,price\ntea,3\ncoffee,\ncake,5"
TOP = {"name": "top", "code": "return sorted(inputs['rows'])[-inputs['n']:]", "tags": ["sort"],
       "parameters": {"type": "object", "required": ["rows"],
                      "properties": {"rows": {"type": "array"}, "n": {"type": "integer", "default": 2}}}}


def run(server, name, **body):
    reply = server.post(f"/v1/patterns/{name}/run", body)
    assert reply.status == 200, reply
    return reply.json


def test_the_eight_operations_of_a_fresh_server(server):
    """S0-79; it runs first, so that the server is fresh."""
    done = subprocess.run([sys.executable, ROOT / "tests/service/agent_runner.py", server.url],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert len(lines) == 9 and [line.split()[1] for line in lines[:6]] == ["ok"] * 6, done.stdout


# ---- patterns ----

def test_saved_found_replaced_and_gone(server):
    saved = server.post("/v1/patterns", TOP)
    assert saved.status == 201 and saved.json["success_rate"] == 100 and saved.json["usage_count"] == 0
    assert server.post("/v1/patterns", TOP).status == 409
    found = server.get("/v1/patterns/top").json
    assert found["code"] == TOP["code"] and found["usage_count"] == 1 and found["last_used_at"]
    names = [pattern["name"] for pattern in server.get("/v1/patterns").json["items"]]
    assert {"csv-analyzer", "payroll-duplicate-detector", "top"} <= set(names)
    assert "code" not in server.get("/v1/patterns").json["items"][0]
    assert server.put("/v1/patterns/top", {"code": "return 1"}).json["code"] == "return 1"
    assert server.put("/v1/patterns/top", {"name": "other", "code": "1"}).status == 400
    assert server.delete("/v1/patterns/top").status == 204
    assert server.get("/v1/patterns/top").status == 404
    assert server.delete("/v1/patterns/top").status == 404


def test_a_run_with_parameters_moves_its_statistics(server):
    execution = server.run("return 1")
    server.put("/v1/patterns/top", {**TOP, "learned_from": execution["id"]})
    assert run(server, "top", inputs={"rows": [3, 1, 2]})["execution"]["result"] == [2, 3]
    assert run(server, "top", inputs={"rows": [3, 1, 2], "n": 1})["execution"]["result"] == [3]
    failed = run(server, "top", inputs={"rows": [3, "x"]})["execution"]
    assert failed["status"] == "FAILED" and failed["error"]["name"] == "TypeError"
    refused = run(server, "top", inputs={"n": 1})["execution"]
    assert refused["error"]["name"] == "INPUT_VALIDATION_ERROR"
    pattern = server.get("/v1/patterns/top").json
    assert pattern["runs"] == 3 and abs(pattern["success_rate"] - 200 / 3) < 0.01
    assert pattern["average_ms"] > 0 and pattern["average_cost_usd"] > 0
    assert pattern["learned_from"] == execution["id"]
    kpis = server.get("/v1/kpis").json
    assert 0 < kpis["pattern_reuse_rate"] < 1 and 0 < kpis["pattern_success_rate"] <= 1


def test_the_samples_do_what_they_say(server):
    done = run(server, "csv-analyzer", inputs={"csv": CSV})["execution"]
    assert done["result"]["rowCount"] == 3 and done["result"]["columns"][1]["missing"] == 1, done
    pay = [{"employee_id": 1, "period": "2026-10", "amount": "1,000"},
           {"employee_id": 1, "period": "2026-10", "amount": 1000.0},
           {"employee_id": 2, "period": "2026-10", "amount": 900}]
    done = run(server, "payroll-duplicate-detector", inputs={"records": pay})["execution"]["result"]
    assert done["duplicateGroups"] == 1 and done["overpaid"] == 1000 and done["duplicates"][0]["rows"] == [0, 1]


def test_a_chain(server):
    server.put("/v1/patterns/double", {"code": "return {'rows': [2 * n for n in inputs['rows']]}"})
    server.put("/v1/patterns/total", {"language": "javascript", "code": "return inputs.rows.reduce((a, b) => a + b, inputs.more)"})
    server.put("/v1/patterns/both", {"steps": [{"pattern": "double"}, {
        "pattern": "total", "inputs": {"rows": "$previous.rows", "more": "$inputs.more"}}]})
    done = run(server, "both", inputs={"rows": [1, 2, 3], "more": 30})
    assert done["execution"]["result"] == 42 and [step["pattern"] for step in done["steps"]] == ["double", "total"]
    assert server.get("/v1/patterns/both").json["runs"] == 1
    server.delete("/v1/patterns/total")
    broken = server.post("/v1/patterns/both/run", {"inputs": {"rows": []}})
    assert broken.status == 404 and "step 2" in broken.json["error"]["message"]


@pytest.mark.parametrize("body, text", [
    ({"name": "x"}, "'code' must be a text"),
    ({"name": "", "code": "1"}, "'name' must have 1 to 100"),
    ({"name": "x", "code": "1", "parameters": {"type": "objekt"}}, "parameters"),
    ({"name": "x", "code": "1", "langage": "python"}, "unknown member 'langage'; there are: name,"),
    ({"name": "x", "code": "1", "language": "cobol"}, "cobol"),
])
def test_what_makes_no_sense_is_refused(server, body, text):
    reply = server.post("/v1/patterns", body)
    assert reply.status in (400, 422) and text in reply.json["error"]["message"], reply


def test_a_run_is_like_any_other(server):
    server.put("/v1/patterns/slow", {"code": "while True: pass"})
    done = run(server, "slow", policy={"timeout": "200ms"}, agent_type="claude")
    assert done["execution"]["status"] == "TIMEOUT"
    record = server.get(f"/v1/executions/{done['execution']['id']}").json
    assert record["agent_type"] == "claude"
    assert server.post("/v1/patterns/slow/run", {"code": "1"}).status == 400
    assert server.post("/v1/patterns/nobody/run", {}).status == 404


# ---- the agent toolkit ----

def test_tools_are_browsed_in_few_tokens_and_loaded_one_by_one(server):
    listed = server.get("/api/agent/list-tools?category=data")
    assert listed.json["count"] == 2 and len(listed.text) / 4 <= 200
    assert set(listed.json["tools"][0]) == {"id", "name", "description", "language", "category"}
    assert server.get("/api/agent/search-tools?q=automation").json["count"] == 3
    tool = server.get("/api/agent/get-tool?id=data_validator").json["tool"]
    assert tool["language"] == "python" and "def " in tool["code"] and "executeCode" in tool["usage"]
    assert tool["requiredPackages"] == ["jsonschema"] and tool["maxTimeoutSec"] == 30


def test_using_a_tool_raises_its_counts(server):
    for _ in range(2):
        ran = server.post("/api/agent/execute-code", {"code": "print(1)", "toolId": "data_validator", "agentType": "gpt-4"})
        assert ran.json["success"]
    tool = server.get("/api/agent/get-tool?id=data_validator").json["tool"]
    assert tool["usageCount"] == 2 and tool["lastUsedAt"] and tool["averageExecTime"] > 0


@pytest.mark.parametrize("path, status, error", [
    ("get-tool", 400, "Tool id is required"), ("get-tool?id=nobody", 404, "Tool not found"),
    ("search-tools", 400, "Search query is required"), ("get-pattern", 400, "Pattern name is required"),
    ("get-pattern?name=nobody", 404, "Pattern not found"), ("system-prompt?tool=nobody", 404, "Tool not found"),
])
def test_what_is_missing_is_named(server, path, status, error):
    reply = server.get(f"/api/agent/{path}")
    assert reply.status == status and reply.json["error"] == error and not reply.json["success"], reply


def test_an_address_that_cannot_be_read_is_refused_in_their_shape(server):
    for path in ("list-tools?category=%00", "search-tools?q=" + 9000 * "x"):
        reply = server.get(f"/api/agent/{path}")
        assert reply.status in (400, 414) and reply.json["success"] is False, reply


@pytest.mark.parametrize("body, status, error", [
    ({"code": "1"}, 400, "Pattern name is required"), ({"name": "x"}, 400, "Code is required"),
    ({"name": "x", "code": "1", "language": "cobol"}, 422, "Invalid pattern"),
    ({"name": "csv-analyzer", "code": "1"}, 409, "Pattern already exists"),
])
def test_a_pattern_that_cannot_be_saved(server, body, status, error):
    reply = server.post("/api/agent/save-pattern", body)
    assert reply.status == status and reply.json["error"] == error, reply


def test_patterns_are_listed_by_category(server):
    listed = server.get("/api/agent/list-patterns?category=data-processing").json
    assert [pattern["name"] for pattern in listed["patterns"]] == ["csv-analyzer", "payroll-duplicate-detector"]
    assert server.get("/api/agent/list-patterns?category=nothing").json["count"] == 0


def test_costs_and_prompts(server):
    costs = server.get("/api/agent/cost-summary?period=monthly").json
    assert costs["period"] == "monthly" and set(costs["summary"]) == {
        "totalExecutions", "totalCost", "avgCostPerExecution", "traditionalMCPCost", "savings", "savingsPercent"}
    assert costs["summary"]["totalExecutions"] > 0 and costs["summary"]["totalCost"] > 0
    prompt = server.get("/api/agent/system-prompt").json
    assert "searchTools(" in prompt["prompt"] and prompt["tokens"] < 1000
    assert "Code template" in server.get("/api/agent/system-prompt?tool=csv_parser").json["prompt"]
    assert "(2)" in server.get("/api/agent/system-prompt?category=data").json["prompt"]


# ---- large data ----

def test_data_is_summarised_where_it_lies(server):
    done = server.post("/api/agent/process-data", {"data": CSV}).json
    assert done["success"] and done["rowCount"] == 3 and done["columnCount"] == 2, done
    assert "price: 1 of 3 values are missing" in done["findings"]
    lines = "\n".join(json.dumps({"a": n, "b": "x"}) for n in range(50))
    assert server.post("/api/agent/process-data", {"data": lines}).json["rowCount"] == 50
    session = server.post("/v1/sessions", {"language": "python"}).json["id"]
    big = "id,amount\n" + "".join(f"{n},{n % 97}\n" for n in range(200000))
    assert server.put(f"/v1/sessions/{session}/files/big.csv", big.encode()).status == 204
    reply = server.post("/api/agent/process-data", {"filePath": "big.csv", "sessionId": session})
    assert reply.json["rowCount"] == 200000 and len(reply.body) < 2000, reply
    assert server.delete(f"/v1/sessions/{session}").status == 204


@pytest.mark.parametrize("body, error", [
    ({}, "File path is required"), ({"filePath": "x", "data": "y"}, "File path is required"),
    ({"filePath": "x.csv"}, "Invalid file path"), ({"data": "x", "operation": "train"}, "Operation not implemented"),
    ({"data": "x", "language": "ruby"}, "Invalid language"),
])
def test_data_that_cannot_be_processed(server, body, error):
    reply = server.post("/api/agent/process-data", body)
    assert reply.status == 400 and reply.json["error"] == error, reply


def test_a_host_path_is_the_operators_to_grant(server):
    reply = server.post("/api/agent/process-data", {"filePath": "/etc/passwd"})
    assert reply.status in (400, 403) and not reply.json["success"], reply


def test_the_feature_flag_covers_it_all():
    with serve(env={"USE_CODE_EXECUTION": "false"}) as off:
        for path in ("list-tools", "search-tools?q=x", "get-pattern?name=x", "system-prompt", "cost-summary"):
            assert off.get(f"/api/agent/{path}").status == 503
        assert off.post("/api/agent/process-data", {"data": "x"}).status == 503
