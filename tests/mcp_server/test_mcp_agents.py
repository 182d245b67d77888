# SPDX-License-Identifier: Apache-2.0
"""Code agents as an MCP server of their own, seen by the official clients over both transports."""

import json
import pathlib
import subprocess

import pytest

from house import RETORT

HERE = pathlib.Path(__file__).resolve().parent
NUMBERS = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
           "required": ["a", "b"]}


@pytest.fixture(scope="module")
def agent(server):
    made = server.post("/code-agents", {
        "name": "Adder", "language": "python", "code": "return {'sum': input_data['a'] + input_data['b']}",
        "inputSchema": NUMBERS, "outputSchema": {"type": "object"}})
    assert made.status == 201, made
    return made.json


@pytest.mark.parametrize("kind", ["v1", "v2"])
@pytest.mark.parametrize("way", ["http", "stdio"])
def test_the_official_client_calls_an_agent(node, server, agent, kind, way):
    served = server.post(f"/code-agents/{agent['id']}/deploy-mcp", {"serverName": "sums"}).json
    where = [served["serverUrl"]] if way == "http" else \
        [RETORT, *served["command"]["args"], "--data-dir", server.data_dir]  # beside the server
    done = subprocess.run([node, HERE / "agents.mjs", kind, way, *where], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == {"tools": ["adder"], "answer": {"sum": 42}, "wrong": True}
