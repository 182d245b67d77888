# SPDX-License-Identifier: Apache-2.0
"""A server that dies, hangs or lies costs its callers an error they can catch (S2-100)."""


import pytest

from story import story



@pytest.fixture(scope="module")
def house():
    dead = {"command": "/bin/false"}
    with story(more={"dead": dead}) as one:
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


