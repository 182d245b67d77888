# SPDX-License-Identifier: Apache-2.0
"""Drives the MCP client of src/tools through build/mcp-client-driver against servers of all kinds.

    client = clients({"a": rogue("--modern")})       servers by name, as in mcpServers
    client.call("a:echo", x=1)["value"]              an answer; {"error": …} when it failed
    ticket = client.start("a:never")                 one that is not waited for; client.result(ticket)
"""

import pytest
from driving import Client, npm_config, rogue_config


@pytest.fixture
def clients(tmp_path):
    """Each must end well: every test is also a test for leaks (under ASan) and for hanging."""
    made = []

    def make(servers, **more):
        folder = tmp_path / f"client{len(made)}"
        folder.mkdir()
        made.append(Client(servers, folder, **more))
        return made[-1]

    yield make
    for client in made:
        if not client.process.stdin.closed:
            status, words = client.close()
            assert (status, words) == (0, "")


@pytest.fixture
def rogue():
    return rogue_config


@pytest.fixture
def npm():
    return npm_config
