# SPDX-License-Identifier: Apache-2.0
"""Tools and approvals over HTTP: browsed, found, described, typed, called through the gate."""

import json
import subprocess
import sys
import threading
import time
import typing

import pytest

from house import RETORT, ROOT, serve

VALID = {"data": {"age": 36}, "schema": {"type": "object"}}
GITHUB = ROOT / "tests/code_execution/servers/github.py"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """With an MCP server of its own, and a tool that waits for a person's word."""
    folder = tmp_path_factory.mktemp("tools")
    config, commits = folder / "mcp.json", folder / "commits.json"
    commits.write_text(json.dumps([{"sha": "a1", "author": "ann"}, {"sha": "b2", "author": "bob"}]))
    config.write_text(json.dumps({"mcpServers": {"github": {
        "command": sys.executable, "args": [str(GITHUB)], "env": {"STORY_COMMITS": str(commits)}}}}))
    with serve("--mcp-config", config, env={"RETORT_TOOLS_NEEDS_APPROVAL": "toolbox:file_watcher"}) as one:
        yield one


# ---- looking around ----

def test_browsing_gives_neither_schemas_nor_code(server):
    page = server.get("/v1/tools").json
    names = [tool["name"] for tool in page["items"]]
    assert "github:list_commits" in names and "toolbox:csv_parser" in names
    assert names == sorted(names) and page["total"] == len(names) and page["next_after"] is None
    assert set(page["items"][0]) == {"name", "title", "description", "category", "server", "version", "flags"}


def test_a_category_and_pages(server):
    data = server.get("/v1/tools?category=data").json
    assert [tool["name"] for tool in data["items"]] == ["toolbox:csv_parser", "toolbox:json_transformer"]
    assert len(json.dumps(data)) / 4 < 300
    seen, after = [], ""
    while after is not None:
        page = server.get(f"/v1/tools?limit=5&after={after}").json
        seen += [tool["name"] for tool in page["items"]]
        after = page["next_after"]
    assert len(seen) == len(set(seen)) == page["total"]


def test_a_sentence_finds_a_tool(server):
    found = server.get("/v1/tools/search?q=commits%20of%20a%20repository&limit=3&related=true").json
    best = found["tools"][0]
    assert best["tool_id"] == "github:list_commits" and best["server_id"] == "github"
    assert set(best) == {"tool_id", "server_id", "description", "semantic_score", "graph_score",
                         "final_score", "related_tools"}
    assert found["meta"]["count"] == len(found["tools"]) and found["meta"]["alpha"] <= 1
    assert server.get("/v1/tools/search?q=%20").status == 400


def test_servers_and_their_health(server):
    servers = {one["server"]: one["status"] for one in server.get("/v1/tools/servers").json["items"]}
    assert {"github", "toolbox"} <= set(servers) and set(servers.values()) == {"healthy"}


# ---- one tool ----

def test_a_tool_has_its_schemas_and_its_usage(server):
    tool = server.get("/v1/tools/toolbox:csv_parser").json
    assert tool["input_schema"]["properties"]["content"]["type"] == "string"
    assert tool["usage"]["uses"] == 0 and tool["is_output_observed"] is False and "code" not in tool
    missing = server.get("/v1/tools/toolbox:csv_parsr")
    assert missing.status == 404 and "toolbox:csv_parser" in missing.json["error"]["message"]


def test_an_output_schema_is_learned_and_kept(server):
    for schema in ({}, {"type": "string"}):
        server.post("/v1/tools/toolbox:data_validator/call", {"arguments": {"data": {"age": 36}, "schema": schema}})
    tool = server.get("/v1/tools/toolbox:data_validator").json
    assert tool["is_output_observed"] and tool["output_schema"]["x-observed"] == 2
    assert tool["output_schema"]["properties"]["valid"] == {"type": "boolean"}
    assert {"success", "valid"} <= set(tool["output_schema"]["required"])
    assert "valid: boolean;" in server.get("/v1/tools/toolbox:data_validator?format=typescript").text


def test_stubs_are_code_in_their_languages(server):
    for name in ("toolbox:statistical_analyzer", "github:list_commits"):
        python = server.get(f"/v1/tools/{name}?format=python").text
        space = {}
        exec(compile(python, name, "exec"), space)
        function = getattr(space[name.split(":")[0]], name.split(":")[1])
        assert typing.get_type_hints(function) and function.__doc__
        typescript = server.get(f"/v1/tools/{name}?format=typescript").text
        ran = server.run(typescript + "\nconst one: number = 1; return one", language="typescript")
        assert ran["result"] == 1, ran
    assert server.get("/v1/tools/toolbox:csv_parser?format=ruby").status == 400


# ---- calling ----

def test_a_call_and_its_usage(server):
    before = server.get("/v1/tools/toolbox:data_validator").json["usage"]["uses"]
    reply = server.post("/v1/tools/toolbox:data_validator/call", {"arguments": VALID})
    assert reply.status == 200 and reply.json["is_error"] is False, reply
    assert reply.json["result"]["valid"] is True and reply.json["elapsed_ms"] > 0
    assert server.get("/v1/tools/toolbox:data_validator").json["usage"]["uses"] == before + 1


def test_a_call_of_an_mcp_server(server):
    reply = server.post("/v1/tools/github:listCommits/call", {"arguments": {"limit": 2}})
    assert reply.status == 200 and not reply.json["is_error"], reply
    assert [commit["sha"] for commit in reply.json["result"]] == ["a1", "b2"]
    learned = server.get("/v1/tools/github:list_commits").json
    assert learned["is_output_observed"] and learned["output_schema"]["items"]["required"] == ["sha", "author"]


@pytest.mark.parametrize("path, body, status", [
    ("toolbox:nobody", {}, 404),
    ("toolbox:csv_parser", {"arguments": [1]}, 400),
    ("toolbox:csv_parser", {"argument": {}}, 400),
    ("toolbox:csv_parser", {"timeout": "9m"}, 400),
    ("toolbox:stripe_payment", {"arguments": {"amount": 1, "currency": "usd", "api_key": "k"}}, 403),
])
def test_what_makes_no_sense_is_refused(server, path, body, status):
    reply = server.post(f"/v1/tools/{path}/call", body)
    assert reply.status == status and reply.json["error"]["message"], reply


def test_tools_called_together_are_related(server):
    ran = server.run("github.list_commits(limit=1)\n"
                     "return toolbox.data_validator(data={}, schema={})['valid']")
    assert ran["status"] == "SUCCESS", ran
    found = server.get("/v1/tools/search?q=commits&related=true&context=toolbox:data_validator").json
    assert found["meta"]["edge_count"] >= 1 and found["meta"]["alpha"] < 1
    hit = {tool["tool_id"]: tool for tool in found["tools"]}["github:list_commits"]
    assert hit["graph_score"] == 1
    assert {"tool_id": "toolbox:data_validator", "relation": "often_after", "score": 0.8} in hit["related_tools"]


# ---- approvals ----

def call_and_wait(server, answers):
    answers.append(server.post("/v1/tools/toolbox:file_watcher/call",
                               {"arguments": {"path": "/tmp", "duration_ms": 10}}))


def pending(server):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        items = server.get("/v1/approvals?status=pending").json["items"]
        if items:
            return items[0]
        time.sleep(0.02)
    pytest.fail("nobody asked")


@pytest.mark.parametrize("word, status", [("approve", "approved"), ("reject", "rejected")])
def test_a_call_waits_for_a_word(server, word, status):
    answers = []
    thread = threading.Thread(target=call_and_wait, args=(server, answers))
    thread.start()
    asked = pending(server)
    assert asked["operation"] == "toolbox:file_watcher" and asked["arguments"]["path"] == "/tmp"
    assert asked["expires_at"] > asked["created_at"] and asked["decided_by"] is None
    decided = server.post(f"/v1/approvals/{asked['id']}/{word}", {"comment": "not now"})
    assert decided.status == 200 and decided.json["status"] == status, decided
    assert decided.json["comment"] == "not now" and decided.json["decided_by"]
    thread.join()
    if word == "approve":
        assert answers[0].status == 200, answers
    else:
        assert answers[0].status == 403 and "not now" in answers[0].text, answers
    again = server.post(f"/v1/approvals/{asked['id']}/approve")
    assert again.status == 409 and status in again.json["error"]["message"]
    assert server.get(f"/v1/approvals/{asked['id']}").json["status"] == status


def test_who_hangs_up_withdraws_the_question(server):
    with pytest.raises(TimeoutError):
        server.post("/v1/tools/toolbox:file_watcher/call", {}, timeout=0.5)
    deadline = time.monotonic() + 30
    while server.get("/v1/approvals?status=pending").json["items"]:
        assert time.monotonic() < deadline, "it is still asked"
        time.sleep(0.05)
    assert server.get("/v1/approvals?limit=1").json["items"][0]["status"] == "cancelled"


def test_an_approval_nobody_knows(server):
    assert server.get("/v1/approvals/appr_0").status == 404
    assert server.post("/v1/approvals/appr_0/approve").status == 404
    assert server.get("/v1/approvals?status=maybe").status == 400


# ---- roles ----

def test_roles(tmp_path):
    keys = {}
    for role in ("owner", "admin", "member", "viewer"):
        made = subprocess.run([RETORT, "keys", "create", "--role", role, "--name", role, "--data-dir", tmp_path],
                              capture_output=True, text=True, check=True)
        keys[role] = made.stdout.strip()
    with serve(data_dir=str(tmp_path)) as one:
        for role, call, decide in (("viewer", 403, 403), ("member", 200, 403), ("admin", 200, 404)):
            key = keys[role]
            assert one.get("/v1/tools", key=key).status == 200
            assert one.get("/v1/approvals", key=key).status == 200
            assert one.get("/v1/patterns", key=key).status == 200
            called = one.post("/v1/tools/toolbox:data_validator/call", {"arguments": VALID}, key=key)
            assert called.status == call, (role, called)
            assert one.post("/v1/approvals/appr_0/approve", key=key).status == decide, role
            saved = one.post("/v1/patterns", {"name": role, "code": "return 1"}, key=key)
            assert saved.status == (403 if role == "viewer" else 201), saved
