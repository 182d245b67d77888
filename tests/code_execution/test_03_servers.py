# SPDX-License-Identifier: Apache-2.0
"""GitHub, Jira and Slack in one run (S2-98); which tools a run may call, and by which names."""

import pytest

from story import story


def test_three_servers_are_joined_in_the_cell(house):
    house.forget_calls()
    answer = house.run("javascript", """
        const [commits, issues, messages] = await Promise.all([
            github.listCommits({limit: 100}),
            jira.searchIssues({status: 'open'}),
            slack.listMessages({limit: 10}),
        ]);
        return {commits: commits.length, open: issues.length, messages: messages.length};""")
    assert answer["result"] == {"commits": 100, "open": 20, "messages": 10}
    assert {call["server"]: call["tool"] for call in house.calls()} == {
        "github": "list_commits", "jira": "search_issues", "slack": "list_messages"}
    assert sorted(answer["tool_ids"]) == ["github:list_commits", "jira:search_issues",
                                          "slack:list_messages"]


@pytest.mark.parametrize("language,code", [
    ("python", "return len(github.list_commits({'limit': 2}))"),
    ("python", "return len(github.listCommits(limit=2))"),
    ("python", "return len(await github.list_commits(limit=2))"),
    ("python", "return len(tools.call('github:list_commits', {'limit': 2}))"),
    ("javascript", "return (await github.list_commits({limit: 2})).length"),
    ("javascript", "return (await mcp.github.listCommits({limit: 2})).length"),
    ("javascript", "return (await tools.call('github:list_commits', {limit: 2})).length"),
    ("bash", "retort-tool github:list_commits '{\"limit\": 2}' | python3 -c "
             "'import json, sys; print(len(json.load(sys.stdin)))'"),
])
def test_every_language_calls_in_its_own_way(house, language, code):
    assert house.run(language, code)["result"] == 2


def test_calls_run_side_by_side(house):
    answer = house.run("python", """
import asyncio, time
began = time.monotonic()
values = await asyncio.gather(*[slack.slow_echo(value=n, seconds=1) for n in range(8)])
return [[v["value"] for v in values], time.monotonic() - began]""")
    values, took = answer["result"]
    assert values == list(range(8))
    assert took < 6, "eight calls of a second each went one after the other"


@pytest.mark.parametrize("language,code", [
    ("javascript", "try { await github.getCommit({sha: 'x'}) } catch (e) "
                   "{ return [e.name, e.toolName, e.message] }"),
    ("python", "try:\n    github.get_commit(sha='x')\nexcept MCPToolError as e:\n"
               "    return [type(e).__name__, e.tool_name, str(e)]"),
])
def test_an_error_of_a_tool_is_an_exception_code_can_catch(house, language, code):
    name, tool, message = house.run(language, code)["result"]
    assert name == "MCPToolError" and tool == "github:get_commit"
    assert message.startswith("Tool error in 'github:get_commit':") and "no commit x" in message


def test_an_unknown_tool_is_an_error_with_a_suggestion(house):
    answer = house.run("python", "github.list_comits()")
    assert answer["status"] == "FAILED"
    assert answer["error"]["name"] == "MCPToolError"
    assert "github:list_commits" in answer["error"]["message"]


def test_a_run_calls_only_what_it_was_granted(house):
    house.forget_calls()
    code = "try:\n    {}\nexcept MCPToolError as e:\n    return str(e)"
    said = house.run("python", code.format("tools.call('jira:search_issues', {})"),
                     tools=["github:*"])["result"]
    assert "not granted" in said
    assert house.run("python", "return 'jira' in globals()", tools=["github:*"])["result"] is False
    assert house.run("python", "return [t['name'] for t in tools.list()]",
                     tools=["github:list_*"])["result"] == ["github:list_commits"]
    assert house.calls() == []


def test_code_finds_tools_by_what_they_do(house):
    answer = house.run("python", """
best = tools.search("commits of a repository", limit=3)[0]["name"]
return [best, tools.describe(best)["inputSchema"]["properties"]["limit"]["type"]]""")
    assert answer["result"] == ["github:list_commits", "integer"]


def test_an_intent_brings_the_tools_that_fit_and_no_others(house):
    answer = house.run("python", "return [t['name'] for t in tools.list()]",
                       intent="list the commits of a repository")
    assert "github:list_commits" in answer["result"]
    assert "jira:create_issue" not in answer["result"] and len(answer["result"]) <= 5


def test_the_operator_grants_and_asks(tmp_path):
    with story("--tools.granted", "github:list_*,jira:*") as house:
        said = house.run("python", "github.delete_repository(repo='all')")
        assert said["status"] == "FAILED" and "tools.granted" in said["error"]["message"]
        assert house.calls() == []


def test_sessions_call_tools_too(house):
    made = house.server.post("/v1/sessions", {"language": "python"}).json["id"]
    path = f"/v1/sessions/{made}/execute"
    house.server.post(path, {"code": "commits = github.list_commits(limit=7)"})
    answer = house.server.post(path, {"code": "return len(commits) + len(jira.search_issues())"}).json
    assert answer["result"] == 37
    house.server.delete(f"/v1/sessions/{made}")


def test_calls_are_on_record(house):
    answer = house.run("python", "return len(github.list_commits(limit=1))")
    row = house.server.get(f"/v1/executions/{answer['id']}").json
    assert row["tool_ids"] == ["github:list_commits"]
    assert row["hashes"]["transcript"] == answer["hashes"]["transcript"]
