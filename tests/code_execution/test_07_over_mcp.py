# SPDX-License-Identifier: Apache-2.0
"""The same story for a client of MCP: search, describe, code with an intent, a person's word."""

import json
import sys
import threading
import time

import pytest

from story import HERE, story

sys.path.insert(0, str(HERE.parent / "mcp_server"))

from peers import Modern  # noqa: E402


@pytest.fixture(scope="module")
def house():
    with story("--tools.needs_approval", "github:delete_*") as one:
        yield one


@pytest.fixture
def mcp(house):
    return Modern(house.server)


def execute(mcp, code, **more):
    return mcp.call("pml:execute_code", code=code, **more)["structuredContent"]


def test_an_agent_searches_describes_and_writes_code(house, mcp):
    found = mcp.call("pml_search_tools", query="list the commits of a repository")
    name = found["structuredContent"]["tools"][0]["tool_id"]
    about = mcp.call("pml_describe_tool", name=name)["structuredContent"]
    assert name == "github:list_commits" and "limit" in about["inputSchema"]["properties"]
    answer = execute(mcp, "return (await github.listCommits({limit: 1000})).length",
                     intent="list the commits of a repository")
    assert answer["result"] == 1000
    assert len(json.dumps(answer)) < 1000


def test_an_intent_brings_its_tools_and_a_context_its_values(mcp):
    answer = execute(mcp, "return [(await github.listCommits({limit: n})).length, typeof jira]",
                     intent="list the commits of a repository", context={"n": 3})
    assert answer["result"] == [3, "undefined"]


def test_explicit_tools_join_those_of_the_intent(mcp):
    answer = execute(mcp, "return (await jira.searchIssues({status: 'done'})).length",
                     intent="list the commits of a repository", tools=["jira:search_issues"])
    assert answer["result"] == 10


def test_a_tool_is_called_directly_by_its_name(mcp):
    answer = mcp.call("jira:search_issues", status="done")
    assert len(json.loads(answer["content"][0]["text"])) == 10


def wait_for_question(mcp, operation):
    until = time.monotonic() + 30
    while time.monotonic() < until:
        waiting = mcp.call("pml_approvals")["structuredContent"]["pending"]
        for one in waiting:
            if one["operation"] == operation and one["status"] == "pending":
                return one
        time.sleep(0.05)
    pytest.fail("nobody was asked")


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("language,code", [
    ("python", "try:\n    return github.delete_repository(repo='old')\n"
               "except MCPToolError as e:\n    return str(e)"),
    ("javascript", "try { return await github.deleteRepository({repo: 'old'}) } "
                   "catch (e) { return e.message }"),
    ("bash", "retort-tool github:delete_repository '{\"repo\": \"old\"}' 2>&1 || true"),
])
def test_code_waits_for_a_persons_word_with_its_clock_stopped(house, mcp, language, code, approved):
    house.forget_calls()
    got = {}
    runner = threading.Thread(target=lambda: got.update(house.run(
        language, code, policy={"timeout": "1s"})))
    runner.start()
    question = wait_for_question(mcp, "github:delete_repository")
    assert question["arguments"] == {"repo": "old"}
    time.sleep(1.3)  # longer than the run's whole time: it stands still
    mcp.call("pml_approvals", id=question["id"], approved=approved, feedback="not on a Friday")
    runner.join(30)
    assert got["status"] == "SUCCESS", got
    if approved:
        assert got["result"] == {"deleted": "old"}
        assert len(house.calls("github")) == 1
    else:
        assert "not on a Friday" in got["result"]
        assert house.calls("github") == []
