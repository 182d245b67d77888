# SPDX-License-Identifier: Apache-2.0
"""Every language keeps the same promises: answers, errors, limits, and no way out of its cell."""

import base64

import pytest

from installed import INSTALLED
from programs import PROGRAMS, SQL_ESCAPE

INPUT = {"n": 5, "s": "x y"}


def cases(what):
    return [name for name in PROGRAMS if what in PROGRAMS[name] and INSTALLED[name]["available"]]


def test_every_language_is_listed_with_its_version_or_what_to_do():
    for name, row in INSTALLED.items():
        assert row["version"] if row["available"] else name in row["detail"], row


@pytest.mark.parametrize("language", cases("answer"))
def test_what_is_printed_is_the_answer(execute, language):
    code, expected = PROGRAMS[language]["answer"]
    answer = execute(language, code, input=INPUT)
    assert answer["success"] and answer["result"] == expected, answer
    assert answer["language"] == language and answer["denials"] == []


@pytest.mark.parametrize("language", cases("text"))
def test_text_is_an_answer_too(execute, language):
    code, expected = PROGRAMS[language]["text"]
    answer = execute(language, code)
    assert answer["result"] == expected and answer["parsed"] is False


@pytest.mark.parametrize("language", cases("result"))
def test_an_answer_can_be_written_to_the_result_file(execute, language):
    code, expected = PROGRAMS[language]["result"]
    answer = execute(language, code)
    assert answer["result"] == expected and answer["stdout"] == "noise"


@pytest.mark.parametrize("language", cases("input"))
def test_the_input_is_on_stdin_and_in_variables(execute, language):
    code, expected = PROGRAMS[language]["input"]
    assert execute(language, code, input=INPUT)["result"] == expected


@pytest.mark.parametrize("language", cases("error"))
def test_an_error_names_its_line(execute, language):
    code, line, message = PROGRAMS[language]["error"]
    answer = execute(language, code)
    assert not answer["success"] and answer["error"]["line"] == line, answer
    assert message in answer["error"]["message"]


@pytest.mark.parametrize("language", cases("syntax"))
def test_a_syntax_error_is_one(execute, language):
    code, line = PROGRAMS[language]["syntax"]
    error = execute(language, code)["error"]
    assert (error["type"], error["line"]) == ("SyntaxError", line), error


@pytest.mark.parametrize("language", cases("status"))
def test_a_status_is_kept(execute, language):
    code, status = PROGRAMS[language]["status"]
    assert execute(language, code)["exit_code"] == status


@pytest.mark.parametrize("language", cases("artifact"))
def test_files_in_out_come_back(execute, language):
    code, text = PROGRAMS[language]["artifact"]
    artifacts = execute(language, code)["artifacts"]
    assert [a["name"] for a in artifacts] == ["a.txt"] and artifacts[0]["size"] == len(text)


# ---- limits ----

@pytest.mark.parametrize("language", cases("loop"))
def test_time_ends_a_run(execute, language):
    answer = execute(language, PROGRAMS[language]["loop"], input=INPUT, policy={"timeout": "700ms"})
    assert answer["status"] == "TIMEOUT", answer["error"]


@pytest.mark.parametrize("language", cases("memory"))
def test_memory_is_limited(execute, language):
    answer = execute(language, PROGRAMS[language]["memory"], policy={"memory": "64M", "timeout": "20s"})
    assert answer["status"] == "MEMORY_ERROR" or "too big" in answer["error"]["message"], answer["error"]


@pytest.mark.parametrize("language", cases("flood"))
def test_a_flood_of_output_is_stopped(execute, language):
    answer = execute(language, PROGRAMS[language]["flood"], input=INPUT, policy={"output": "100K", "timeout": "20s"})
    assert answer["error"]["limit"] == "output", answer["error"]
    assert len(answer["stdout"]) <= 100 << 10


@pytest.mark.parametrize("language", cases("forks"))
def test_a_fork_bomb_is_bounded_and_gone_afterwards(execute, language, server):
    answer = execute(language, PROGRAMS[language]["forks"], policy={"processes": "20", "timeout": "500ms"})
    assert not answer["success"]
    assert execute("bash", "echo 1")["result"] == 1


# ---- no way out ----

@pytest.mark.parametrize("language", cases("escape"))
def test_nothing_outside_the_cell_is_reached(execute, language):
    answer = execute(language, PROGRAMS[language]["escape"])
    assert answer["success"] and len(answer["result"]) >= 4, answer
    assert {how for how in answer["result"].values()} == {"refused"}, answer["result"]


@pytest.mark.parametrize("statement", SQL_ESCAPE)
def test_sql_reaches_no_file_that_is_not_shown(execute, statement):
    assert not execute("sql", statement)["success"]


def test_a_policy_without_subprocesses_runs_no_program(server):
    reply = server.post("/v1/executions", {"language": "perl", "code": "print 1", "policy": {"subprocess": "deny"}})
    assert reply.status == 403 and "subprocess: deny" in reply.text
    assert server.run("SELECT 1 AS a", "sql", policy={"subprocess": "deny"})["result"] == [{"a": 1}]


def test_code_runs_where_nothing_can_be_written(execute, need):
    need("perl")
    assert execute("perl", "print 42; exit(open(my $f, '>', '/tmp/x') ? 1 : 0)", policy={"files": "read_only"})["result"] == 42
    answer = execute("c", "int main(void) { return 0; }", policy={"files": "read_only"})
    assert not answer["success"] and "cannot be" in answer["error"]["message"]


# ---- an operator's own ----

def test_a_file_adds_a_language(execute, server):
    rows = {row["name"]: row for row in server.get("/v1/languages").json["items"]}
    assert rows["sed"]["available"] and rows["sed"]["about"] == "an editor" and rows["sed"]["version"]
    assert execute("sed", "s/a/b/", input="banana")["result"] == "bbnana"
    assert execute("sed", "\nz!")["error"]["line"] == 2


def test_one_whose_program_is_not_there_says_so(server):
    reply = server.post("/v1/executions", {"language": "cobol", "code": "x"})
    assert reply.status == 422 and "no program 'no-such-cobol'" in reply.text


# ---- sessions ----

def test_a_session_keeps_files_and_tables(server):
    for language, first, second, expected in [
            ("perl", 'open my $f, ">", "a"; print $f "kept"', 'open my $f, "<", "a"; print <$f>', "kept"),
            ("sql", "CREATE TABLE t AS SELECT 5 AS a", "SELECT a FROM t", [{"a": 5}])]:
        session = server.post("/v1/sessions", {"language": language}).json["id"]
        for code in (first, second):
            answer = server.post(f"/v1/sessions/{session}/execute", {"code": code}).json
        assert answer["result"] == expected, answer
        server.delete(f"/v1/sessions/{session}")


def test_an_interrupted_query_leaves_its_session(server):
    session = server.post("/v1/sessions", {"language": "sql"}).json["id"]
    path = f"/v1/sessions/{session}/execute"
    server.post(path, {"code": "CREATE TABLE t AS SELECT 5 AS a"})
    late = server.post(path, {"code": PROGRAMS["sql"]["loop"], "policy": {"timeout": "300ms"}}).json
    assert late["status"] == "TIMEOUT"
    assert server.post(path, {"code": "SELECT a FROM t"}).json["result"] == [{"a": 5}]
    server.delete(f"/v1/sessions/{session}")


# ---- WebAssembly ----

def leb(n):
    out = b""
    while n > 0x7f:
        out, n = out + bytes([n & 0x7f | 0x80]), n >> 7
    return out + bytes([n])


def vec(*items):
    return leb(len(items)) + b"".join(items)


def text(s):
    return leb(len(s)) + s.encode()


def module(types, imports, exports, code, data=b""):
    """A module of one function; types are of i32 only: (parameters, results)."""
    def section(number, body):
        return bytes([number]) + leb(len(body)) + body
    kinds = [b"\x60" + vec(*[b"\x7f"] * p) + vec(*[b"\x7f"] * r) for p, r in types]
    places = [text("wasi_snapshot_preview1") + text(name) + b"\0" + leb(kind) for name, kind in imports]
    body = b"\0" + code + b"\x0b"
    return base64.b64encode(
        b"\0asm\1\0\0\0" + section(1, vec(*kinds)) + section(2, vec(*places)) + section(3, vec(leb(len(types) - 1)))
        + section(5, b"\1\0\1") + section(7, vec(text("memory") + b"\2\0", *[text(e) + b"\0" + leb(len(imports)) for e in exports]))
        + section(10, vec(leb(len(body)) + body))
        + (section(11, b"\1\0\x41\0\x0b" + leb(len(data)) + data) if data else b"")).decode()


def const(n):
    out = b""
    while n > 0x3f:
        out, n = out + bytes([n & 0x7f | 0x80]), n >> 7
    return b"\x41" + out + bytes([n])


SAID = b'{"hello": "wasm"}\n'
HELLO = module([(4, 1), (0, 0)], [("fd_write", 0)], ["_start"], const(1) + const(0) + const(1) + const(8) + b"\x10\0\x1a",
               (16).to_bytes(4, "little") + len(SAID).to_bytes(4, "little") + bytes(8) + SAID)
EXIT = module([(1, 0), (0, 0)], [("proc_exit", 0)], ["_start"], const(3) + b"\x10\0")
TRAP = module([(0, 0)], [], ["_start"], b"\0")
LOOP = module([(0, 0)], [], ["_start"], b"\x03\x40\x0c\0\x0b")
FILL = module([(0, 0)], [], ["_start"], const(4000) + b"\x40\0\x1a" + const(0) + const(1) + const(4000 << 16) + b"\xfc\x0b\0")
ADD = module([(2, 1)], [], ["add"], b"\x20\0\x20\1\x6a")
# echo: fd_read(0, iovec at 0, 1, 8) then fd_write(1, iovec at 0, 1, 8) of what came
ECHO = module([(4, 1), (0, 0)], [("fd_read", 0), ("fd_write", 0)], ["_start"],
              const(0) + const(0) + const(1) + const(8) + b"\x10\0\x1a" + const(4) + const(8) + b"\x28\2\0" + b"\x36\2\0"
              + const(1) + const(0) + const(1) + const(8) + b"\x10\1\x1a",
              (16).to_bytes(4, "little") + (200).to_bytes(4, "little") + bytes(8))


def test_a_module_prints_its_answer(execute):
    assert execute("wasm", HELLO)["result"] == {"hello": "wasm"}


def test_a_module_reads_the_input_on_stdin(execute):
    assert execute("wasm", ECHO, input={"a": [1]})["result"] == {"a": [1]}
    assert execute("wasm", ECHO, stdin="42")["result"] == 42


def test_a_function_of_a_module_is_called(execute):
    assert execute("wasm", ADD, input={"call": "add", "args": [2, 40]})["result"] == 42
    error = execute("wasm", ADD)["error"]
    assert "it exports add" in error["message"]


def test_how_a_module_ends_is_told(execute):
    assert execute("wasm", EXIT)["exit_code"] == 3
    assert "unreachable" in execute("wasm", TRAP)["error"]["message"]
    assert execute("wasm", LOOP, policy={"timeout": "500ms"})["status"] == "TIMEOUT"
    assert execute("wasm", FILL, policy={"memory": "128M", "timeout": "20s"})["status"] == "MEMORY_ERROR"
    assert "no WebAssembly module" in execute("wasm", "bm90IGEgbW9kdWxl")["error"]["message"]


def test_a_module_that_was_uploaded(server):
    session = server.post("/v1/sessions", {"language": "wasm"}).json["id"]
    path = f"/v1/sessions/{session}"
    assert server.put(f"{path}/files/a.wasm", base64.b64decode(HELLO)).status in (200, 201, 204)
    assert server.post(f"{path}/execute", {"code": "a.wasm"}).json["result"] == {"hello": "wasm"}
    server.delete(path)


# ---- the route ----

def test_the_answer_says_which_runtime_took_it_and_why(execute, server):
    assert execute("python", "return 1")["route"]["reason"] == "default"
    named = execute("python", "return 1", runtime="vm2")["route"]
    assert (named["runtime"], named["reason"]) == ("vm2", "explicit")
    missing = execute("python", "return 1", runtime="e2b")["route"]
    assert (missing["runtime"], missing["wanted"]) == ("local", "e2b") and "not configured" in missing["fallback"]
    long = execute("python", "return 1", runtime={"long_job": True})["route"]
    assert (long["reason"], long["wanted"]) == ("long_job", "bacalhau")
    assert execute("wasm", HELLO, runtime={"requires_sandbox": True})["route"]["runtime"] == "wasmedge"
    assert execute("python", "return 1")["route"]["expectedMs"] > 0
    reply = server.post("/v1/executions", {"code": "return 1", "runtime": "cloud9"})
    assert reply.status == 400 and "unknown runtime 'cloud9'" in reply.text
    rows = {row["name"]: row for row in server.get("/v1/runtimes").json["items"]}
    assert rows["vm2"]["count"] == 1 and rows["vm2"]["successRate"] == 1 and rows["e2b"]["available"] is False
    assert 'retort_executions_total{language="python",runtime="vm2",status="SUCCESS"} 1' in server.get("/metrics").text
