# SPDX-License-Identifier: Apache-2.0
"""Servers of other people: those of npm, and one made with the official SDK in both eras."""

import os
import socket
import subprocess

import pytest
from driving import HERE, NODE, eventually


def sdk(transport, *args, **more):
    return {"command": NODE, "args": [str(HERE / "modern.mjs"), transport, *args], **more}


@pytest.fixture
def sdk_url():
    started = []

    def start(*args):
        started.append(subprocess.Popen([NODE, HERE / "modern.mjs", "http", *args], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return started[-1].stdout.readline().strip()

    yield start
    for process in started:
        process.stdin.close()
        process.wait(timeout=10)
        process.stdout.close()


@pytest.fixture
def everything_url(tmp_path):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    server = subprocess.Popen([NODE, HERE / "node_modules/.bin/mcp-server-everything", "streamableHttp"],
                              env={**os.environ, "PORT": str(port)}, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)

    def is_there():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    assert eventually(is_there)
    yield f"http://127.0.0.1:{port}/mcp"
    server.kill()
    server.wait()


# ---- the official SDK ----

@pytest.mark.parametrize("args, version", [([], "2026-07-28"), (["reject"], "2026-07-28")])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_sdk_is_spoken_to_in_the_modern_era(clients, sdk_url, transport, args, version):
    config = sdk("stdio", *args) if transport == "stdio" else {"url": sdk_url(*args)}
    client = clients({"sdk": config})
    tools = {t["name"]: t for t in client.list("sdk")["tools"]}
    assert set(tools) == {"sdk:add", "sdk:fail", "sdk:grow"}
    assert tools["sdk:add"]["title"] == "Add" and tools["sdk:add"]["flags"] == 1 | 4
    assert client.call("sdk:add", a=2, b=40)["value"] == {"sum": 42}
    failed = client.call("sdk:fail")
    assert failed["is_error"] and failed["value"] == "on purpose"
    assert client.health("sdk")["protocol"] == version
    assert client.health("sdk")["server_info"] == {"name": "modern", "version": "2.0.0"}


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_sdk_is_spoken_to_in_the_legacy_era_when_we_insist(clients, sdk_url, transport):
    config = sdk("stdio") if transport == "stdio" else {"url": sdk_url()}
    client = clients({"sdk": {**config, "protocol_version": "2025-11-25"}})
    assert client.call("sdk:add", a=2, b=40)["value"] == {"sum": 42}
    assert client.health("sdk")["protocol"] == "2025-11-25"


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_changes_of_the_sdks_tools_are_heard(clients, sdk_url, transport):
    client = clients({"sdk": sdk("stdio") if transport == "stdio" else {"url": sdk_url()}})
    client.list("sdk")
    assert client.call("sdk:grow")["value"] == "grown"
    assert client.event()["event"] == "change"
    assert "sdk:more" in {t["name"] for t in client.list("sdk")["tools"]}


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_resources_can_be_read(clients, sdk_url, transport):
    client = clients({"sdk": sdk("stdio") if transport == "stdio" else {"url": sdk_url()}})
    ticket = client.send("request", server="sdk", method="resources/read", params={"uri": "note://one"})
    [content] = client.result(ticket)["result"]["contents"]
    assert content["text"] == "a note"


# ---- npm ----

@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_server_everything(clients, npm, everything_url, transport):
    client = clients({"e": npm("mcp-server-everything", "stdio") if transport == "stdio"
                      else {"url": everything_url}})
    names = {t["name"] for t in client.list("e")["tools"]}
    assert {"e:echo", "e:get-sum", "e:trigger-long-running-operation"} <= names
    assert client.call("e:echo", message="hällo")["value"] == "Echo: hällo"
    assert client.call("e:get-structured-content", location="Chicago")["value"]["conditions"]
    image = client.call("e:get-tiny-image")["value"]
    assert {b["type"] for b in image} == {"text", "image"}
    ticket = client.start("e:trigger-long-running-operation", {"progress": True}, duration=1, steps=4)
    assert "completed" in client.result(ticket)["value"]
    assert [p[:2] for p in client.progress[ticket]] == [[float(i), 4.0] for i in range(1, 5)]
    assert client.call("e:get-sum", a="x", b=1)["is_error"]


def test_server_filesystem(clients, npm, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    client = clients({"f": npm("mcp-server-filesystem", str(folder))})
    assert not client.call("f:write_file", path=str(folder / "a.txt"), content="ä" * 1000)["is_error"]
    assert client.call("f:read_text_file", path=str(folder / "a.txt"))["value"] == {"content": "ä" * 1000}
    assert client.call("f:read_text_file", path="/etc/passwd")["is_error"]
    tools = {t["name"]: t["flags"] for t in client.list("f")["tools"]}
    assert tools["f:read_text_file"] & 1 and tools["f:write_file"] & 2 and tools["f:write_file"] & 32


def test_server_memory(clients, npm, tmp_path):
    config = npm("mcp-server-memory", env={"MEMORY_FILE_PATH": str(tmp_path / "m.jsonl")})
    client = clients({"m": config})
    entity = {"name": "Retort", "entityType": "program", "observations": ["runs code"]}
    assert client.call("m:create_entities", entities=[entity])["value"]["entities"] == [entity]
    assert client.call("m:search_nodes", query="Retort")["value"]["entities"] == [entity]


def test_several_servers_at_once(clients, npm, sdk_url, tmp_path):
    client = clients({"e": npm("mcp-server-everything", "stdio"), "h": {"url": sdk_url()},
                      "s": sdk("stdio"), "m": npm("mcp-server-memory",
                                                  env={"MEMORY_FILE_PATH": str(tmp_path / "m.jsonl")})})
    tickets = [client.start("e:get-sum", a=1, b=2), client.start("h:add", a=1, b=2),
               client.start("s:add", a=1, b=2), client.start("m:read_graph")]
    assert [client.result(t)["value"] for t in tickets] == [
        "The sum of 1 and 2 is 3.", {"sum": 3}, {"sum": 3}, {"entities": [], "relations": []}]
