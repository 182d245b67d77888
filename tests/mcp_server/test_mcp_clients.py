# SPDX-License-Identifier: Apache-2.0
"""The official clients, old and new, and the Inspector, over both transports."""

import json
import pathlib
import subprocess

import pytest

from house import RETORT

HERE = pathlib.Path(__file__).resolve().parent
INSPECTOR = HERE / "node_modules/.bin/mcp-inspector"


@pytest.fixture(params=["http", "stdio"])
def target(request, tmp_path):
    """How a client reaches us: a URL, or a command."""
    if request.param == "http":
        return "http", [request.getfixturevalue("server").url + "/mcp"]
    return "stdio", [RETORT, "mcp", "--data-dir", str(tmp_path / "data")]


@pytest.mark.parametrize("kind", ["v1", "v2-legacy", "v2-auto", "v2-modern"])
def test_the_official_client_lists_calls_and_watches(node, target, kind):
    way, where = target
    done = subprocess.run([node, HERE / "clients.mjs", kind, way, *where], capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    saw = json.loads(done.stdout)
    assert {"pml_search_tools", "pml_execute_code", "execute_code"} <= set(saw["tools"])
    assert saw["result"] == 42
    assert saw["progress"][-2:] == ["one", "two"]
    assert saw["failed"]["code"] == -32603 and "SyntaxError" in saw["failed"]["message"]
    assert saw["templates"] == ["retort://artifact/{handle}"]


@pytest.mark.parametrize("era", ["legacy", "auto", "modern"])
def test_the_inspector_finds_nothing_to_complain_about(node, target, era):
    if not INSPECTOR.exists():  # npm's lock files without addresses lose what it needs for other systems
        pytest.skip("no Inspector: 'npm install --no-save @modelcontextprotocol/inspector@2.12.0' here adds it")
    way, where = target
    reach = [*where, "--transport", "http"] if way == "http" else []
    after = ["--", *where] if way == "stdio" else []

    def inspect(*args):
        done = subprocess.run([node, INSPECTOR, "--cli", *reach, "--protocol-era", era, "--format",
                               "json", *args, *after], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
        return json.loads(done.stdout)["result"]

    listed = inspect("--method", "tools/list", "--strict")
    assert "pml_execute_code" in [tool["name"] for tool in listed["tools"]]
    called = inspect("--method", "tools/call", "--tool-name", "pml_execute_code", "--tool-arg",
                     "code=return 6 * 7")
    assert called["structuredContent"]["result"] == 42
