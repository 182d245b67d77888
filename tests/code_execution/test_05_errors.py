# SPDX-License-Identifier: Apache-2.0
"""A server that dies, hangs or lies costs its callers an error they can catch (S2-100)."""

import sys

import pytest

from story import HERE, story

sys.path.insert(0, str(HERE.parent / "mcp"))

from driving import rogue_config  # noqa: E402


@pytest.fixture(scope="module")
def house():
    dead = {"command": "/bin/false"}
    with story(more={"dead": dead, "rogue": rogue_config(timeout_ms=2000)}) as one:
        yield one


def test_a_server_killed_in_the_middle_of_a_call(house):
    answer = house.run("python", """
try:
    github.crash()
except MCPToolError as e:
    first = str(e)
return [first, len(github.list_commits(limit=2))]""", policy={"timeout": "60s"})
    assert answer["status"] == "SUCCESS", answer
    said, after = answer["result"]
    assert said.startswith("Tool error in 'github:crash':") and after == 2


def test_a_server_that_never_starts_delays_nobody_else(house):
    answer = house.run("python", """
try:
    dead.anything()
except MCPToolError as e:
    return [str(e), len(jira.search_issues())]""", policy={"timeout": "60s"})
    assert "dead" in answer["result"][0] and answer["result"][1] == 30


def test_a_run_that_times_out_in_a_call_ends_and_the_daemon_goes_on(house):
    answer = house.run("python", "slack.slow_echo(seconds=60)", policy={"timeout": "700ms"})
    assert answer["status"] == "TIMEOUT"
    assert house.run("python", "return 1")["result"] == 1




@pytest.mark.parametrize("misdeed", ["flood", "never", "broken_result", "no_object", "kill", "refuse"])
def test_whatever_a_server_does_code_can_catch_it(house, misdeed):
    answer = house.run("javascript", """
        try { await rogue.%s({}) } catch (e) { return [e.name, (await rogue.echo({x: 1})).x] }
        return "nothing was wrong";""" % misdeed, policy={"timeout": "60s"})
    assert answer["result"] == ["MCPToolError", 1], answer["error"]


def test_a_server_that_changes_its_tools_is_asked_again(house):
    answer = house.run("python", """
import time
rogue.change()
for _ in range(100):
    if any(tool["name"] == "rogue:late" for tool in tools.list()):
        return "late is there"
    time.sleep(0.1)""", policy={"timeout": "60s"})
    assert answer["result"] == "late is there", answer
