# SPDX-License-Identifier: Apache-2.0
"""The public servers of npm, called from code: everything, filesystem and memory."""

import pathlib
import sys

import pytest

from story import HERE, story

sys.path.insert(0, str(HERE.parent / "mcp"))

from driving import npm_config  # noqa: E402


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    (folder / "notes.txt").write_text("one\ntwo\nthree\n")
    more = {"everything": npm_config("mcp-server-everything", "stdio"),
            "files": npm_config("mcp-server-filesystem", str(folder)),
            "memory": npm_config("mcp-server-memory",
                                 env={"MEMORY_FILE_PATH": str(folder / "memory.jsonl")})}
    with story(more=more) as one:
        one.shared = pathlib.Path(folder)
        yield one


def test_all_three_in_one_run(house):
    answer = house.run("typescript", f"""
        const text = await files.readTextFile({{path: "{house.shared}/notes.txt"}});
        const lines = text.content.trim().split("\\n");
        await memory.createEntities({{entities: lines.map(name => ({{name, entityType: "line",
                                                                 observations: []}}))}});
        const graph = await memory.readGraph({{}});
        const sum = await everything.getSum({{a: 40, b: 2}});
        return {{lines: graph.entities.map(e => e.name), sum: String(sum).includes("42")}};""",
                       policy={"timeout": "60s"})
    assert answer["result"] == {"lines": ["one", "two", "three"], "sum": True}, answer
    assert len(answer["tool_ids"]) == 4


def test_what_a_server_refuses_is_an_exception(house):
    answer = house.run("python", """
try:
    files.read_text_file(path="/etc/passwd")
except MCPToolError as e:
    return str(e)""")
    assert answer["result"].startswith("Tool error in 'files:read_text_file':")
    assert "root:" not in answer["result"]
