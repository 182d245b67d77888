# SPDX-License-Identifier: Apache-2.0
"""The few tools a model sees, in the shapes agents were written against (requirements.md 6.1)."""

import base64
import json
import sqlite3
import subprocess
import time

import pytest

from house import RETORT, serve
from peers import Failed, Modern, Session


@pytest.fixture(params=["modern", "legacy"])
def peer(request, server):
    return Modern(server) if request.param == "modern" else Session(server)


def value(result):
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    return result["structuredContent"]


# ---- the list ----

def test_the_list_is_small(peer):
    """It is in every conversation: at most 1,250 tokens at four characters each."""
    tools = peer.request("tools/list")["tools"]
    assert len(tools) <= 10
    assert len(json.dumps(tools, separators=(",", ":"))) < 5000
    assert all(tool["description"] and tool["inputSchema"]["type"] == "object" for tool in tools)


def test_execute_code_is_listed_with_its_one_requirement(peer):
    tool = {tool["name"]: tool for tool in peer.request("tools/list")["tools"]}["pml_execute_code"]
    assert tool["inputSchema"]["required"] == ["code"]
    assert {"code", "intent", "context", "sandbox_config", "language"} <= set(
        tool["inputSchema"]["properties"])


@pytest.mark.parametrize("name", ["pml:search_tools", "pml_search_tools", "search_tools"])
def test_a_name_is_understood_with_both_signs_and_without(peer, name):
    assert value(peer.call(name, query="commits of last week"))["meta"]["query"]


# ---- pml:execute_code ----

def test_the_answer_has_result_logs_and_metrics(peer):
    code = "console.log('a'); console.log('b'); return {sum: data.a + data.b}"
    said = value(peer.call("pml:execute_code", code=code, context={"data": {"a": 10, "b": 20}}))
    assert said["result"] == {"sum": 30} and said["logs"] == ["a", "b"]
    assert said["metrics"]["inputSizeBytes"] == len(code)
    assert said["metrics"]["outputSizeBytes"] == len('{"sum":30}')
    assert said["metrics"]["executionTimeMs"] > 0
    assert "state" not in said


def test_state_comes_back_only_when_it_is_wanted(peer):
    said = value(peer.call("pml:execute_code", code="n", context={"n": 3}, return_state=True))
    assert said["result"] == 3 and said["state"]["context"] == {"n": 3}


@pytest.mark.parametrize("language, code", [
    (None, "const x: number = 6 * 7; return x"), ("javascript", "return 6 * 7"),
    ("python", "return 6 * 7"), ("bash", "echo 42")])
def test_languages(peer, language, code):
    given = {"language": language} if language else {}
    assert value(peer.call("pml_execute_code", code=code, **given))["result"] == 42


def test_the_second_time_the_answer_comes_from_the_cache(server):
    code = "return [1, 2, 3].map((n) => n * 1001)"
    first = value(Session(server).call("pml_execute_code", code=code))
    again = value(Session(server).call("pml_execute_code", code=code))
    assert "cached" not in first["metrics"] and again["metrics"]["cached"] is True
    assert first["result"] == again["result"]


def test_a_failed_run_is_an_error_that_says_how(peer):
    with pytest.raises(Failed) as why:
        peer.call("pml:execute_code", code="print('before')\n1 / 0", language="python")
    assert why.value.code == -32603
    assert why.value.message == "Code execution failed: RuntimeError - division by zero"
    data = why.value.data
    assert (data["error_type"], data["error_message"]) == ("RuntimeError", "division by zero")
    assert "ZeroDivisionError" in data["stack"] and data["execution_time_ms"] > 0
    assert data["logs"] == ["before"]


@pytest.mark.parametrize("code, type_, text", [
    ("let = ", "SyntaxError", ""), ("while (true) {}", "TimeoutError", "timeout of 500ms"),
    ("const a = []; for (;;) a.push(new Array(1e6).fill(1.5))", "MemoryError", "")])
def test_kinds_of_failure(peer, code, type_, text):
    with pytest.raises(Failed) as why:
        peer.call("pml:execute_code", code=code,
                  sandbox_config={"timeout": 500 if text else 20000, "memoryLimit": 64})
    assert why.value.data["error_type"] == type_ and text in why.value.message


@pytest.mark.parametrize("arguments, text", [
    ({}, "Missing required parameter: code"),
    ({"code": ""}, "code"), ({"code": 7}, "code"),
    ({"code": "1", "context": []}, "context must be an object"),
    ({"code": "1", "language": "cobol"}, "cobol"),
    ({"code": "1", "sandbox_config": {"timeout": "soon"}}, "sandbox_config.timeout"),
    ({"code": "1", "sandbox_config": {"timeout": 10**9}}, "timeout"),
    ({"code": "1", "sandbox_config": {"allowedReadPaths": ["/etc"]}}, "/etc"),
    ({"code": "1", "session_id": "session_0_0"}, "session")])
def test_what_makes_no_sense_is_about_the_parameters(peer, arguments, text):
    with pytest.raises(Failed) as why:
        peer.request("tools/call", {"name": "pml:execute_code", "arguments": arguments})
    assert why.value.code == -32602 and text in why.value.message


def test_code_has_a_size(peer):
    fits = "/*" + "x" * 102_388 + "*/return 1"
    assert len(fits) == 102_400 and value(peer.call("pml:execute_code", code=fits))["result"] == 1
    with pytest.raises(Failed) as why:
        peer.call("pml:execute_code", code="x" * 102_401)
    assert why.value.code == -32602
    assert "102401" in why.value.message and "102400" in why.value.message


def test_arguments_may_be_missing_and_must_be_an_object(peer):
    with pytest.raises(Failed, match="Missing required parameter"):
        peer.request("tools/call", {"name": "pml:execute_code"})
    with pytest.raises(Failed, match="arguments must be an object"):
        peer.request("tools/call", {"name": "pml:execute_code", "arguments": [1]})


# ---- execute_code ----

@pytest.mark.parametrize("language, code, text", [
    ("javascript", "return {n: input.length}", '{"n":3}'),
    ("python", "result = {'n': len(input_data)}", '{"n":3}'),
    ("typescript", "const n: number = input.length; return n", "3")])
def test_the_plain_one_answers_with_a_text(peer, language, code, text):
    result = peer.call("execute_code", language=language, code=code, input=[1, 2, 3], packages=[])
    assert result["content"] == [{"type": "text", "text": text}] and "isError" not in result


@pytest.mark.parametrize("language, code, text", [
    ("python", "raise ValueError('no')", "no"), ("cobol", "x", "cobol"),
    ("javascript", "for (;;) ;", "timeout of 5000ms")])
def test_the_plain_one_fails_with_a_text(peer, language, code, text):
    result = peer.call("execute_code", language=language, code=code)
    assert result["isError"] is True
    assert result["content"][0]["text"].startswith("Error: ") and text in str(result)


# ---- large outputs and files ----

def test_a_large_output_is_a_resource(peer):
    result = peer.call("pml_execute_code", language="python",
                       code="return [{'row': i, 'name': f'n{i}'} for i in range(20000)]")
    said = value(result)
    assert said["result"] is None
    (link,) = [block for block in result["content"] if block["type"] == "resource_link"]
    (kept,) = said["artifacts"]
    assert link["uri"] == kept["uri"] == f"retort://artifact/{kept['handle']}"
    assert said["metrics"]["outputSizeBytes"] == kept["size"] == link["size"] > 500_000
    assert len(json.dumps(result)) < 4000
    (content,) = peer.request("resources/read", {"uri": link["uri"]})["contents"]
    assert len(json.loads(content["text"])) == 20000 and content["mimeType"] == "application/json"
    branch = value(peer.call("pml_read_artifact", handle=kept["handle"], json_path="$[3].name"))
    assert "n3" in json.dumps(branch)
    found = value(peer.call("pml_read_artifact", handle=link["uri"], search="n19999"))
    assert "n19999" in json.dumps(found)


def test_files_a_run_left_are_resources(peer):
    said = value(peer.call("pml_execute_code", language="python", code=(
        "import os\nos.makedirs('out', exist_ok=True)\n"
        "open('out/a.bin', 'wb').write(bytes(range(256)))")))
    (kept,) = said["artifacts"]
    assert kept["name"] == "a.bin"
    listed = peer.request("resources/list")["resources"]
    assert kept["uri"] in [one["uri"] for one in listed]
    (content,) = peer.request("resources/read", {"uri": kept["uri"]})["contents"]
    assert base64.b64decode(content["blob"]) == bytes(range(256))


def test_what_is_not_there_is_not_found(server):
    for peer, code in ((Modern(server), -32602), (Session(server), -32002)):
        with pytest.raises(Failed) as why:
            peer.request("resources/read", {"uri": "retort://artifact/art_0_0"})
        assert (why.value.code, why.value.data) == (code, {"uri": "retort://artifact/art_0_0"})
        with pytest.raises(Failed):
            peer.request("resources/list", {"cursor": "of somebody else"})


# ---- sessions ----

def test_a_session_keeps_its_variables_and_files_and_can_be_branched(peer):
    def session(action, **more):
        return value(peer.call("pml_session", action=action, **more))

    one = session("create", language="python", name="notes")["session_id"]
    peer.call("pml_execute_code", session_id=one, code="n = 41")
    other = session("branch", session_id=one)["session_id"]
    peer.call("pml_execute_code", session_id=one, code="n = 0")
    assert value(peer.call("pml_execute_code", session_id=other, code="return n + 1"))["result"] == 42
    session("write", session_id=one, path="a/b.txt", text="héllo")
    said = value(peer.call("pml_execute_code", session_id=one, code="return open('a/b.txt').read()"))
    assert said["result"] == "héllo"
    assert "a/b.txt" in [file["path"] for file in session("files", session_id=one)["files"]]
    assert session("read", session_id=one, path="a/b.txt") == {"text": "héllo"}
    assert one in [row["session_id"] for row in session("list")["sessions"]]
    for id_ in (one, other):
        assert session("end", session_id=id_) == {"ended": id_}
    assert one not in [row["session_id"] for row in session("list")["sessions"]]


@pytest.mark.parametrize("arguments, text", [
    ({"action": "fly"}, "one of: create"), ({"action": "end"}, "session_id"),
    ({"action": "end", "session_id": "session_0_0"}, "session"),
    ({"action": "create", "language": "cobol"}, "cobol")])
def test_what_goes_wrong_with_sessions_is_the_tools_own_error(peer, arguments, text):
    result = peer.call("pml_session", **arguments)
    assert result["isError"] is True and text in result["content"][0]["text"]


# ---- personal data ----

def test_personal_data_is_tokens_unless_the_call_says_otherwise(peer):
    code, context = "return {who, note: 'ask ' + who}", {"who": "ada@example.com"}
    masked = value(peer.call("pml:execute_code", code=code, context=context))["result"]
    assert "ada@example.com" not in json.dumps(masked) and "[EMAIL_1]" in masked["who"]
    clear = value(peer.call("pml:execute_code", code=code, context=context,
                            sandbox_config={"piiProtection": False}))["result"]
    assert clear["who"] == "ada@example.com"


# ---- tools of others ----

@pytest.fixture(scope="module")
def seeded(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("seeded"))
    subprocess.run([RETORT, "tools", "seed", "--data-dir", folder], check=True, capture_output=True)
    with serve(data_dir=folder) as one:
        yield one


def test_tools_are_found_described_and_called_by_their_own_names(seeded):
    peer = Modern(seeded)
    (best, *_) = value(peer.call("pml_search_tools", query="parse a csv file", limit=3))["tools"]
    assert (best["tool_id"], best["server_id"]) == ("toolbox:csv_parser", "toolbox")
    assert 0 < best["final_score"] <= 1 and "code" not in best
    about = value(peer.call("pml_describe_tool", name="toolbox:csv_parser"))
    assert "content" in about["inputSchema"]["properties"]
    called = peer.call("toolbox:csv_parser", content="a,b\n1,2\n3,4\n")
    assert called["structuredContent"]["success"] is True
    with pytest.raises(Failed) as why:
        peer.call("github:list_commits")
    assert why.value.code == -32602 and "toolbox" in why.value.data["available_servers"]


def test_without_its_server_a_tool_is_not_found_and_cannot_be_called(peer):
    found = value(peer.call("pml_search_tools", query="commits"))["tools"]
    assert not {"github", "toolbox"} & {tool["server_id"] for tool in found}
    assert peer.call("pml_describe_tool", name="github:list_commits")["isError"] is True
    with pytest.raises(Failed) as why:
        peer.call("github:list_commits")
    assert why.value.code == -32602 and "github" not in why.value.data["available_servers"]


def test_a_tool_is_described_as_code(seeded):
    about = value(Modern(seeded).call("pml_describe_tool", name="toolbox:dataValidator", **{"as": "python"}))
    assert "def data_validator(*" in about["declaration"] and "inputSchema" not in about


# ---- patterns ----

def test_patterns_are_saved_run_and_listed(peer):
    code = "return sum(inputs['numbers'])"
    saved = value(peer.call("pml_patterns", action="save", name=f"sum-{id(peer)}", code=code))
    assert saved["id"].startswith("snippet_")
    done = value(peer.call("pml_patterns", action="run", name=saved["saved"], inputs={"numbers": [40, 2]}))
    assert done["result"] == 42 and done["execution_id"].startswith("exec_")
    rows = value(peer.call("pml_patterns", action="list"))["patterns"]
    assert {"payroll-duplicate-detector", "csv-analyzer", saved["saved"]} <= {row["name"] for row in rows}
    failed = peer.call("pml_patterns", action="run", name=saved["saved"], inputs={"numbers": 1})
    assert failed["isError"] and "TypeError" in failed["content"][0]["text"] or "not iterable" in failed["content"][0]["text"]
    assert value(peer.call("pml_patterns", action="delete", name=saved["saved"]))["deleted"] == saved["saved"]
    with pytest.raises(Failed):
        peer.call("pml_patterns", action="dance")


def test_patterns_have_the_names_agents_know(peer):
    assert value(peer.call("pml:get_pattern", name="csv-analyzer"))["code"]
    assert value(peer.call("list_patterns"))["patterns"]
    name = f"one-{id(peer)}"
    assert value(peer.call("pml_save_pattern", name=name, code="return 1"))["saved"] == name
    assert value(peer.call("run_pattern", name=name))["result"] == 1
    peer.call("save_pattern", name=name, code="return inputs", overwrite=True)
    masked = value(peer.call("run_pattern", name=name, inputs={"to": "ann@example.org"}))
    assert masked["result"] == {"to": "[EMAIL_1]"}
    again = peer.call("save_pattern", name=name, code="return 1")
    assert again["isError"] and "already" in again["content"][0]["text"]


# ---- approvals ----

def ask_for_approval(server, id_):
    """As a run that needs a person's word would."""
    now = int(time.time() * 1000)
    with sqlite3.connect(f"{server.data_dir}/retort.db") as store:
        store.execute("INSERT INTO approvals (id, organisation_id, operation, reason, status, "
                      "created_ms, expires_ms) VALUES (?, 'local', 'github:delete', 'asked', "
                      "'pending', ?, ?)", (id_, now, now + 3_600_000))


def test_what_waits_for_approval_is_listed_and_decided_once(peer, server):
    id_ = f"appr_{time.time_ns()}"
    ask_for_approval(server, id_)
    (row,) = [one for one in value(peer.call("pml_approvals"))["pending"] if one["id"] == id_]
    assert (row["operation"], row["status"], row["priority"]) == ("github:delete", "pending", "normal")
    said = value(peer.call("pml:approvals", id=id_, approved=False, feedback="not today"))
    assert said["status"] == "rejected"
    again = peer.call("pml_approvals", id=id_, approved=True)
    assert again["isError"] is True and "rejected" in again["content"][0]["text"]
    assert id_ not in [one["id"] for one in value(peer.call("pml_approvals"))["pending"]]
