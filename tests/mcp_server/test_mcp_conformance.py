# SPDX-License-Identifier: Apache-2.0
"""The public conformance suite, against the fixture of `retort serve --mcp-fixture`.

Every scenario a revision requires passes. Of those it does not score, only the extension for tasks
is left out: no implementation passes it (protocols/mcp.md 7.2).
"""

import json
import pathlib
import subprocess

import pytest

from house import serve

HERE = pathlib.Path(__file__).resolve().parent
SUITE = HERE / "node_modules/@modelcontextprotocol/conformance/dist/index.js"


@pytest.fixture(scope="module")
def fixture():
    with serve("--mcp-fixture") as one:
        yield one


def checks(folder):
    for path in folder.glob("*/checks.json"):
        for check in json.loads(path.read_text()):
            yield path.parent.name.rsplit("-2026", 1)[0], check


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_the_public_suite_passes(fixture, node, tmp_path, revision):
    url = f"http://localhost:{fixture.port}/mcp"
    done = subprocess.run([node, SUITE, "server", "--url", url, "--requirements", revision, "-o",
                           tmp_path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]
    failed = [(scenario, check["id"], check.get("errorMessage"))
              for scenario, check in checks(tmp_path)
              if check["status"] == "FAILURE" and not scenario.startswith("server-tasks-")]
    assert not failed
    assert sum(check["status"] == "SUCCESS" for _, check in checks(tmp_path)) >= 80


def test_without_the_flag_nothing_of_the_fixture_is_there(mcp):
    assert not [tool for tool in mcp.request("tools/list")["tools"] if "test" in tool["name"]]
    assert "prompts" not in mcp.request("server/discover")["capabilities"]
