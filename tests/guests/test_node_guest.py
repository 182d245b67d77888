# SPDX-License-Identifier: Apache-2.0
"""What JavaScript and TypeScript code sees and answers in a guest."""

import json
import os

import pytest

from harness import Guest, once


def value(code, language="javascript", **more):
    reply, ended = once(language, code, **more)
    assert reply["op"] == "result", reply
    assert ended.status == 0, ended
    return reply.get("value", "nothing")


def error(code, language="javascript", **more):
    reply, ended = once(language, code, **more)
    assert reply["op"] == "error", reply
    assert ended.status == 1
    return reply


@pytest.fixture
def session():
    guest = Guest("javascript")

    def run(code, **more):
        return guest.run(code, keep=True, **more)

    run.guest = guest
    yield run
    assert guest.finish().status == 0


# -- answers ------------------------------------------------------------------------------------

@pytest.mark.parametrize("code, expected", [
    ("2 + 2", 4),
    ("const x = 5; return x * 3", 15),
    ("const x = 5; x * 3", "nothing"),
    ("if (true) return 7", 7),
    ("[1, 2, 3].map(n => n * 2)", [2, 4, 6]),
    ("return 1 + 1;", 2),
])
def test_expressions_answer_and_statements_return(code, expected):
    assert value(code) == expected


@pytest.mark.parametrize("code, expected", [
    ("2 + 2;", 4), (";2 + 2;;", 4), ("// note\n2 + 2 // more", 4), ("({a: 1})", {"a": 1}),
    ("{a: 1}", {"a": 1}), ("{a: 1, b: [2]};", {"a": 1, "b": [2]}), ("'text'", "text"),
    ("`a${1}`", "a1"), ("1, 2", 2), ("await Promise.resolve(3)", 3), ("x = 5", 5),
    ("Promise.resolve(4)", 4), ("(async () => 5)()", 5), ("function f() {}", "nothing"),
    ("class A {}", "nothing"), ("console.log(1)", "nothing"), ("", "nothing"), ("// nothing", "nothing"),
    ("{ let a = 1; }", "nothing"), ("undefined", "nothing"), ("null", None), ("return", "nothing"),
    ("return null", None), ("#!/usr/bin/env node\nreturn 1", 1), ("'use strict'; return 2", 2),
    ("const a = await new Promise(r => setTimeout(r, 5, 6)); return a", 6),
    ("for await (const x of [Promise.resolve(1)]) return x", 1),
    ("return require('path').join('a', 'b')", "a/b"),
    ("const { join } = await import('node:path'); return join('a', 'c')", "a/c"),
    ("const require = 1, input = 2, module = 3; return require + input + module", 6),
    ("return [typeof module, typeof exports, typeof __filename, typeof __dirname]",
     ["object", "object", "string", "string"]),
    ("return /a;b/.test('a;b') ? 'x;y' : 0", "x;y"),
])
def test_forms_of_code(code, expected):
    assert value(code) == expected


@pytest.mark.parametrize("code, expected", [
    ("import fs from 'node:fs';\nexport default typeof fs.readFileSync", "function"),
    ("import { join as j, sep } from 'path'\nreturn j('a', 'b') + sep", "a/b/"),
    ("import * as p from 'path'; export default p.basename('/x/y');", "y"),
    ("import d, { join } from 'path'; return d.join === join", True),
    ("import 'node:fs'\nexport const x = 1\nexport { x as default }", 1),
    ("export default function f() { return 1 }\nexport const g = f()", "nothing"),
    ("export default { a: 1 }", {"a": 1}),
    ("export default await Promise.resolve(3)", 3),
    ("import {\n  join,\n  sep\n} from 'path'\nreturn sep", "/"),
    ("return typeof import.meta.url", "string"),
])
def test_modules_answer_with_export_default_or_return(code, expected):
    assert value(code) == expected


# -- TypeScript ---------------------------------------------------------------------------------

@pytest.mark.parametrize("code, expected", [
    ("function add(a: number, b: number): number { return a + b }\nreturn add(5, 3)", 8),
    ("interface P<T> { x: T }\nconst p: P<number> = { x: 4 };\nreturn p.x", 4),
    ("enum E { A = 1, B }\nreturn E.B", 2),
    ("namespace N { export const x: number = 3 }\nreturn N.x", 3),
    ("class C { constructor(private n: number, public m = 2) {} sum() { return this.n + this.m } }\n"
     "return new C(5).sum()", 7),
    ("const id = <T,>(x: T): T => x;\nreturn id<string>('a')", "a"),
    ("type A = { [k: string]: number };\nconst a = { x: 1 } satisfies A;\nreturn a!.x as number", 1),
    ("const x: number = await Promise.resolve(6); return x", 6),
    ("(2 as number) + 2", 4),
    ("2 + 2", 4),
    ("abstract class A { abstract f(): number }\nclass B extends A { f() { return 9 } }\nreturn new B().f()", 9),
    ("import { join } from 'path';\nconst s: string = join('a', 'b');\nreturn s", "a/b"),
    ("import { join } from 'path';\nenum E { A = 'z' }\nreturn join(E.A, 'b')", "z/b"),
    ("import type { Stats } from 'fs';\nimport fs from 'fs';\nconst f = (s: Stats) => s.size;\n"
     "export default typeof fs.statSync", "function"),
    ("import fs from 'fs';\nenum E { A }\nexport default E.A", 0),
    ("const s = '€ü', n: number = 1; /* ü: € */ type Ü = string; return s + n", "€ü1"),
    ("enum Colour { Red = 'r', Green = 'g' }\ninterface Item<T> { v: T }\nnamespace M { export const k = 2 }\n"
     "const items: Item<Colour>[] = [{ v: Colour.Green }];\nreturn items.map((i): string => i.v + M.k)", ["g2"]),
])
def test_typescript(code, expected):
    assert value(code, "typescript") == expected


@pytest.mark.parametrize("code, line, column", [
    ("const a: number = 1;\nconst b: any = null;\n  b.x", 3, 5),
    ("enum E { A, B }\nenum F { C }\n\nconst b: any = null;\n  b.x;", 5, 5),
    ("const b: any = null; b.x", 1, 24),
    ("namespace N { export const y = 1 }\nfunction f(): never {\n    throw new Error('here')\n}\nf()", 3, 11),
])
def test_typescript_errors_are_at_the_users_place(code, line, column):
    reply = error(code, "typescript")
    assert (reply["type"], reply["line"], reply["column"]) == ("RuntimeError", line, column)
    assert "main.ts:%d:%d" % (line, column) in reply["stack"]


@pytest.mark.parametrize("code, line, column", [
    ("const x: number = ;", 1, 19), ("let a: number = 1;\nlet b = (;", 2, 10),
    ("enum E { A }\nlet b = (;", 2, 10), ("import fs from 'fs'\nlet x: = 3", 2, None)])
def test_typescript_syntax_errors(code, line, column):
    reply = error(code, "typescript")
    assert (reply["type"], reply["line"]) == ("SyntaxError", line)
    assert column is None or reply["column"] == column


# -- JSON ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("code, text", [
    ("return { a: undefined, b: () => 1, c: Symbol('x'), d: 1 }", '{"d":1}'),
    ("return [undefined, () => 1, Symbol('x')]", "[null,null,null]"),
    ("return new Date(0)", '"1970-01-01T00:00:00.000Z"'),
    ("return { r: /x/g }", '{"r":{}}'),
    ("return [NaN, Infinity, -Infinity, -0]", "[null,null,null,0]"),
    ("return 123456789012345678901234567890n", "123456789012345678901234567890"),
    ("return { n: [1n] }", '{"n":[1]}'),
    ("return new Map([['a', 1], [2, new Set([3])]])", '{"2":[3],"a":1}'),
    ("return new Set([1, 'a'])", '[1,"a"]'),
    ("return Buffer.from('abc')", '{"base64":"YWJj"}'),
    ("return new Uint8Array([1])", '{"base64":"AQ=="}'),
    ("return new Float64Array([1.5, 2])", "[1.5,2]"),
    ("return new TypeError('x')", '{"name":"TypeError","message":"x"}'),
    ("return { toJSON() { return 5 } }", "5"),
    ("return new Date(NaN)", "null"),
    ("return '\\ud800'", '"\\ud800"'),
    ("return [new Number(1), new String('s'), new Boolean(false)]", '[1,"s",false]'),
    ("return { nested: { deep: [{ x: null }] } }", '{"nested":{"deep":[{"x":null}]}}'),
])
def test_values_become_json(code, text):
    guest = Guest("javascript")
    guest.order(code)
    raw = guest.raw_reply()
    guest.finish()
    assert '"value":' + text + "}" in raw


def test_a_circular_answer_is_an_error():
    reply = error("const a = {}; a.a = a; return a")
    assert reply["type"] == "RuntimeError" and "circular" in reply["message"]


def test_an_answer_too_large_for_a_frame_is_an_error():
    reply, _ = once("javascript", "return 'x'.repeat(65 << 20)")
    assert reply["op"] == "error" and "out/" in reply["message"]


# -- input --------------------------------------------------------------------------------------

def test_inputs_are_variables_and_environment():
    code = """
return [input === inputs, input.data, data.a + data.b, JSON.parse(process.env.INPUT), performance,
        typeof $x, typeof process.pid]
"""
    sent = {"data": {"a": 10, "b": 20}, "class": 2, "1x": 3, "performance": "mine", "$x": 1, "a-b": 1,
            "await": 1, "arguments": 2, "input": 9}
    assert value(code, input=sent) == [True, sent["data"], 30, sent, "mine", "number", "number"]


def test_an_input_may_be_redeclared_or_absent():
    assert value("const data = [1]; return data", input={"data": 5}) == [1]
    assert value("return [input, inputs]") == [None, {}]
    assert value("return inputs.value * 2", input={"value": 5}) == 10
    assert value("return input", input=[1, 2]) == [1, 2]


@pytest.mark.parametrize("kind, expected", [("json", {"n": [1, 2]}), ("text", '{"n": [1, 2]}')])
def test_input_from_a_memory_file(kind, expected):
    fd = os.memfd_create("input")
    os.write(fd, json.dumps({"n": [1, 2]}).encode())
    guest = Guest("javascript")
    guest.order("return input", fds=[fd], input_fd={"index": 0, "type": kind})
    assert guest.reply()["value"] == expected
    guest.finish()
    os.close(fd)


def test_environment_is_the_runs_own():
    assert value("return { ...process.env }", env={"TOKEN": "x"}) == {
        "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/work", "TMPDIR": "/tmp",
        "LANG": "C.UTF-8", "TOKEN": "x"}
    assert value("return 'INPUT' in process.env", input="x" * 200_000) is False


# -- errors -------------------------------------------------------------------------------------

@pytest.mark.parametrize("code, line, column", [
    ("let x = ;", 1, 9), ("1;\nlet y = );", 2, 9), ("foo(", 1, 5), ("const a = 1;\nconst a = 2;", 2, 7),
    ("return 1;\n}", 2, 1), ("import x from 'fs'\nlet = = 1", 2, None), ("await = 3\n\n5 +", None, None)])
def test_a_syntax_error_has_line_and_column(code, line, column):
    reply = error(code)
    assert reply["type"] == reply["name"] == "SyntaxError" and reply["message"]
    assert line is None or reply["line"] == line
    assert column is None or reply["column"] == column


@pytest.mark.parametrize("code, name, message, line", [
    ("\nnull.x", "TypeError", "Cannot read properties of null (reading 'x')", 2),
    ("\n\nnowhere", "ReferenceError", "nowhere is not defined", 3),
    ("throw new Error('Test error')", "Error", "Test error", 1),
    ("throw 5", "Number", "5", None),
    ("throw null", "null", "null", None),
    ("throw undefined", "undefined", "undefined", None),
    ("throw 'text'", "String", "text", None),
    ("throw { a: 1 }", "Object", "{ a: 1 }", None),
    ("await Promise.reject(new RangeError('r'))", "RangeError", "r", 1),
    ("Promise.reject(new Error('lost')); return 1", "Error", "lost", 1),
    ("setTimeout(() => { throw new Error('late') }, 5); return 1", "Error", "late", 1),
    ("JSON.parse('{')", "SyntaxError", None, 1),
    ("function f() { f() }\nf()", "RangeError", "Maximum call stack size exceeded", 1),
    ("await new Promise(() => {})", "Error", "the code awaits something that will never happen", None),
    ("require('nothing-like-it')", "Error", None, 1),
    ("throw new Proxy({}, { get() { throw 1 } })", None, None, None),
    ("throw Object.defineProperty(new Error('x'), 'message', { get() { throw 1 } })", "Error", "", None),
    ("Error.prepareStackTrace = () => { throw 1 }; throw new Error('prepared')", "Error", "prepared", None),
    ("Error.prepareStackTrace = () => 5; throw new Error('number')", "Error", "number", None),
])
def test_runtime_errors(code, name, message, line):
    reply = error(code)
    assert reply["type"] == "RuntimeError"
    assert name is None or reply["name"] == name
    assert message is None or reply["message"] == message
    assert line is None or reply["line"] == line


def test_the_stack_is_the_users():
    reply = error("function inner() {\n  throw new Error('x')\n}\nawait null\ninner()")
    assert "at inner (main.js:2:9)" in reply["stack"] and "main.js:5:1" in reply["stack"]
    assert (reply["line"], reply["column"]) == (2, 9)
    assert "guest.js" not in reply["stack"] and "node:internal" not in reply["stack"]


def test_causes_are_in_the_stack():
    reply = error("throw new Error('outer', { cause: new Error('inner') })")
    assert "[cause]: Error: inner" in reply["stack"]
    reply = error("await Promise.any([Promise.reject(new Error('one'))])")
    assert "one" in reply["stack"]


def test_refused_and_missing_files_tell_errno_and_path():
    reply = error("require('fs').readFileSync('/nowhere/at/all')")
    assert (reply["type"], reply["errno"], reply["path"]) == ("RuntimeError", 2, "/nowhere/at/all")
    assert reply["line"] == 1
    reply = error("await require('fs/promises').writeFile('/proc/version', 'x')")
    assert reply["type"] in ("PermissionError", "RuntimeError") and reply["errno"] > 0
    reply = error("throw Object.assign(new Error('no'), { code: 'EROFS', errno: -30, path: '/usr/x' })")
    assert (reply["type"], reply["errno"], reply["path"]) == ("PermissionError", 30, "/usr/x")


def test_memory_and_huge_messages():
    assert error("new ArrayBuffer(2 ** 52)")["type"] in ("MemoryError", "RuntimeError")
    assert len(error("throw new Error('x'.repeat(1e6))")["message"]) < 20_000


# -- ends ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("code, status", [
    ("process.exit(3)", 3), ("process.exit()", 0), ("process.exitCode = 4; process.exit()", 4),
    ("setTimeout(() => process.exit(5), 5); await new Promise(() => {})", 5),
    ("process.reallyExit(6)", 6)])
def test_an_exit_is_a_status_and_no_frame(code, status):
    reply, ended = once("javascript", "console.log('before');" + code)
    assert reply is None and (ended.status, ended.stdout) == (status, "before\n")


def test_a_status_set_beside_an_answer_is_in_the_frame():
    reply, ended = once("javascript", "process.exitCode = 3; return 1")
    assert (reply["value"], reply["status"], ended.status) == (1, 3, 3)


def test_the_run_ends_when_the_event_loop_is_empty():
    reply, ended = once("javascript", """
process.on('exit', () => console.log('exit'));
process.once('beforeExit', () => setTimeout(() => console.log('again'), 5));
setTimeout(() => console.log('timer'), 20);
require('fs').readFile('/dev/null', () => console.log('file'));
console.log('now');
return 1
""")
    assert reply["value"] == 1
    assert ended.stdout.split() == ["now", "file", "timer", "again", "exit"]


def test_output_streams_while_the_code_runs_and_is_whole_at_the_end():
    guest = Guest("javascript")
    guest.order("console.log('first'); await new Promise(r => setTimeout(r, 1000));"
                "process.stdout.write('x'.repeat(3e6)); console.error('to stderr'); process.exit(2)")
    assert guest.waits_for_stdout("first\n", seconds=0.9)
    assert guest.reply() is None
    ended = guest.finish()
    assert (ended.status, len(ended.stdout), ended.stderr) == (2, 3_000_006, "to stderr\n")


def test_a_user_who_listens_for_stray_errors_gets_them():
    reply, ended = once("javascript", """
process.on('uncaughtException', (e) => console.log('caught', e.message));
setTimeout(() => { throw new Error('late') }, 5);
return 1""")
    assert reply["value"] == 1 and ended.stdout == "caught late\n"


def test_stdin_and_child_processes():
    guest = Guest("javascript")
    guest.order("const { execSync, spawn } = require('child_process');"
                "const echo = execSync('echo hi').toString();"
                "const code = await new Promise(r => spawn('sh', ['-c', 'exit 3']).on('exit', r));"
                "let text = ''; for await (const part of process.stdin) text += part;"
                "return [echo, code, text]")
    guest.process.stdin.write(b"one\ntwo\n")
    guest.process.stdin.close()
    assert guest.reply()["value"] == ["hi\n", 3, "one\ntwo\n"]
    assert guest.finish().status == 0


# -- sessions -----------------------------------------------------------------------------------

def test_a_session_keeps_declarations(session):
    code = """
const a = 1, { b, c: [d = 4] } = { b: 2, c: [] }
let e
var f = 5; function g() { return a + h }
class K { static s = 7 }
const h = await Promise.resolve(8)
import { join } from 'path'
"""
    assert session(code)["op"] == "result"
    assert session("[a, b, d, typeof e, f, g(), K.s, h, join('x', 'y')]")["value"] == [
        1, 2, 4, "undefined", 5, 9, 7, 8, "x/y"]
    assert session("const a = 10; return g()")["value"] == 18
    assert session("a++; return a")["value"] == 11
    assert session("foo()\nconst z = 1")["op"] == "error"
    assert session("const fn = () => 1\nconst y = 2\nreturn fn.name + y")["value"] == "fn2"


def test_a_session_survives_errors(session):
    assert session("null.x")["line"] == 1
    assert session("let = ;")["type"] == "SyntaxError"
    assert session("process.exit(3)")["name"] == "SystemExit"
    assert session("setTimeout(() => { throw new Error('late') }, 1); await new Promise(r => setTimeout(r, 50))"
                   )["message"] == "late"
    assert session("await new Promise(() => {})")["op"] == "error"
    assert session("Promise.reject(1); await new Promise(r => setTimeout(r, 5))")["op"] == "error"
    assert session("throw null")["name"] == "null"
    assert session("return 1 + 1")["value"] == 2


def test_a_session_keeps_inputs_and_error_positions(session):
    assert session("return x", input={"x": 3})["value"] == 3
    assert session("return x + input.x")["value"] == 6
    session("function thrower() {\n  throw new Error('first')\n}")
    reply = session("\n\n\nthrower()")
    assert "main.js[" in reply["stack"] and reply["op"] == "error"
    reply = session("enum E { A }\nconst q: any = null\nq.x", language="typescript")
    assert reply["line"] == 3
    assert session("const t: number = E.A; return t", language="typescript")["value"] == 0


# -- allowed_imports ----------------------------------------------------------------------------

@pytest.mark.parametrize("code, module, line", [
    ("\nrequire('fs')", "fs", 2), ("import fs from 'node:fs'", "node:fs", 1), ("\nawait import('os')", "os", 2),
    ("const name = 'fs'; require(name)", "fs", 1)])
def test_a_module_outside_the_policy_is_refused(code, module, line):
    reply = error(code, allowed_imports=["path", "url"])
    assert (reply["type"], reply["name"], reply["module"], reply["line"]) == (
        "PermissionError", "ImportError", module, line)
    assert reply["message"] == ("import of '%s' is not allowed by this policy; allowed: path, url; "
                                "add it with allowed_imports" % module)


def test_a_module_in_the_policy_loads():
    code = "import { join } from 'node:path'; return join('a', require('path/posix').sep)"
    assert value(code, allowed_imports=["path"]) == "a/"


def test_limits_are_laid_on():
    code = "return require('fs').readFileSync('/proc/self/limits', 'utf8').match(/open files\\s+(\\d+)/)[1]"
    assert value(code, limits={"descriptors": 64}) == "64"
