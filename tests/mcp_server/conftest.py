# SPDX-License-Identifier: Apache-2.0
"""Drives our MCP server over its real socket and its real pipe.

    mcp.call("pml_execute_code", code="return 6 * 7")["structuredContent"]["result"]
    mcp.request("tools/list")                   the whole JSON-RPC response
    Stdio() as line: line.request("ping")       a `retort mcp` of one's own

`mcp` is a modern client, which says everything with every request; `session` begins with initialize.
"""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "service"))

from house import serve  # noqa: E402
from peers import Modern, Session  # noqa: E402


@pytest.fixture(scope="module")
def server():
    with serve(env={"RETORT_TOOLS_SAMPLES": "false"}) as one:
        yield one


@pytest.fixture
def mcp(server):
    return Modern(server)


@pytest.fixture
def session(server):
    return Session(server)


@pytest.fixture(scope="session")
def node():
    build = pathlib.Path(os.environ.get("RETORT", "build/retort")).resolve().parent
    return str(build / "guests/node/node")
