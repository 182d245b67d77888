# SPDX-License-Identifier: Apache-2.0
"""What code sees inside a cell, language by language: input, answer, await, errors."""

import json

import pytest

INPUT = {"a": 10, "b": {"c": [1, 2]}, "name": "Ada"}

CASES = {
    # python: input
    "python sees input_data": ("python", "return input_data['a']", 10),
    "python sees inputs": ("python", "return inputs['b']['c']", [1, 2]),
    "python sees each key": ("python", "return [a, b, name]", [10, {"c": [1, 2]}, "Ada"]),
    # python: answer
    "python returns": ("python", "return 6 * 7", 42),
    "python sets result": ("python", "result = {'x': 1}", {"x": 1}),
    "python ends with an expression": ("python", "x = 5\nx * 3", 15),
    "python returns from an if": ("python", "if a > 5:\n    return 'big'\nreturn 'small'", "big"),
    "python ends with a statement": ("python", "x = 1", None),
    "python awaits": ("python", "import asyncio\nawait asyncio.sleep(0.01)\nreturn 'slept'", "slept"),
    "python gathers": ("python", "import asyncio\nasync def f(x): return x * 2\nreturn await asyncio.gather(f(1), f(2))", [2, 4]),
    "python defines and calls": ("python", "def f(n): return 1 if n < 2 else n * f(n - 1)\nf(20)", 2432902008176640000),
    "python keeps large integers": ("python", "return 2 ** 70", 2 ** 70),
    "python knows its file": ("python", "return __name__", "__main__"),
    # javascript
    "javascript sees input": ("javascript", "return input.a", 10),
    "javascript sees inputs": ("javascript", "return inputs.b.c", [1, 2]),
    "javascript sees each key": ("javascript", "return [a, b, name]", [10, {"c": [1, 2]}, "Ada"]),
    "javascript returns": ("javascript", "return 6 * 7", 42),
    "javascript awaits": ("javascript", "const x = await Promise.resolve(5); return x", 5),
    "javascript requires": ("javascript", "return require('path').join('a', 'b')", "a/b"),
    "javascript imports": ("javascript", "const { join } = await import('node:path'); return join('a', 'c')", "a/c"),
    # S2-03: pure expressions answer by themselves, statements need a return
    "S2-03 an expression": ("javascript", "2 + 2", 4),
    "S2-03 statements with return": ("javascript", "const x = 5; return x * 3", 15),
    "S2-03 statements without return": ("javascript", "const x = 5; x * 3", None),
    "S2-03 an object": ("javascript", "({a: 1})", {"a": 1}),
    "S2-03 a call": ("javascript", "[1, 2, 3].map(x => x * 2)", [2, 4, 6]),
    "S2-03 an awaited expression": ("javascript", "await Promise.resolve(7)", 7),
    # S2-06: what JSON cannot say
    "S2-06 undefined": ("javascript", "return undefined", None),
    "S2-06 null": ("javascript", "return null", None),
    "S2-06 a function is dropped": ("javascript", "return {f() {}, a: 1}", {"a": 1}),
    "S2-06 a symbol is dropped": ("javascript", "return {s: Symbol('x'), a: 1}", {"a": 1}),
    "S2-06 a date": ("javascript", "return new Date(0)", "1970-01-01T00:00:00.000Z"),
    "S2-06 a regular expression": ("javascript", "return /x/g", {}),
    "S2-06 NaN": ("javascript", "return NaN", None),
    "S2-06 infinity": ("javascript", "return [Infinity, -Infinity]", [None, None]),
    "S2-06 undefined in an array": ("javascript", "return [1, undefined, 3]", [1, None, 3]),
    "S2-06 undefined in an object": ("javascript", "return {a: undefined, b: 1}", {"b": 1}),
    "S2-06 text": ("javascript", "return 'é\\u0000\\n\"'", "é\0\n\""),
    "S2-06 booleans": ("javascript", "return [true, false]", [True, False]),
    "S2-06 numbers": ("javascript", "return [0, -0.5, 1e21, 9007199254740991]", [0, -0.5, 1e21, 9007199254740991]),
    "S2-06 nested": ("javascript", "return {a: {b: {c: [1, {d: 2}]}}}", {"a": {"b": {"c": [1, {"d": 2}]}}}),
    "S2-06 toJSON": ("javascript", "return {toJSON() { return 5 }}", 5),
    # typescript
    "typescript types": ("typescript", "const n: number = 41; return (n + 1) as number", 42),
    "typescript enums": ("typescript", "enum Color { Red = 1, Blue }; return Color.Blue", 2),
    "typescript interfaces and generics": ("typescript", "interface P { x: number }\nfunction id<T>(v: T): T { return v }\n"
                                           "const p: P = id<P>({ x: 3 });\nreturn p.x", 3),
    "typescript awaits": ("typescript", "const f = async (): Promise<string> => 'ok'; return await f()", "ok"),
    "typescript sees input": ("typescript", "return (input as {a: number}).a + a", 20),
    # bash
    "bash sees INPUT": ("bash", "RESULT=$(echo \"$INPUT\" | python3 -c 'import json, sys; print(json.load(sys.stdin)[\"a\"])')", 10),
    "bash sees each key": ("bash", "RESULT=\"$INPUT_name $INPUT_a\"", "Ada 10"),
    "bash sees nested keys as JSON": ("bash", "RESULT=$INPUT_b", {"c": [1, 2]}),
    "bash sees stdin": ("bash", "RESULT=$(cat | tr -d ' \\n' | wc -c)", len(json.dumps(INPUT, separators=(",", ":")))),
    "bash RESULT as JSON": ("bash", "RESULT='{\"x\": [1]}'", {"x": [1]}),
    "bash RESULT as text": ("bash", "RESULT='plain text'", "plain text"),
    "bash prints JSON": ("bash", "echo '[1, 2]'", [1, 2]),
    "bash prints text": ("bash", "echo hello", "hello"),
    "bash says nothing": ("bash", ":", None),
    "bash has arrays and pipes": ("bash", "x=(a b c); echo ${#x[@]} | cat", 3),
}


@pytest.mark.parametrize("name", CASES)
def test_convention(run, name):
    language, code, expected = CASES[name]
    answer = run(language, code, input=INPUT)
    assert answer["success"], answer["error"]
    assert answer["result"] == expected


def test_a_circular_value_is_an_error(run):
    answer = run("javascript", "const a = {}; a.a = a; return a")
    assert answer["error"]["type"] == "RuntimeError" and "circular" in answer["error"]["message"].lower()


@pytest.mark.parametrize("code", ["return object()", "return {1: {2}}", "return float('nan')", "return b'x'", "return [1, (2, 3)]",
                                  "import datetime\nreturn datetime.datetime(2020, 1, 1)", "import decimal\nreturn decimal.Decimal('1.50')",
                                  "x = []\nx.append(x)\nreturn x"])
def test_what_python_cannot_say_as_json_is_answered_or_explained(run, code):
    answer = run("python", code)
    assert answer["success"] or answer["error"]["message"]


def test_a_deeply_nested_answer_is_answered_or_explained(run):
    answer = run("python", "x = 1\nfor i in range(700): x = [x]\nreturn x")
    assert answer["success"] or answer["error"]["message"]


# ---- errors ----

SYNTAX = {
    "python": ("x = 1\ny = 2\nif x ==:\n    pass", 3),
    "python indentation": ("x = 1\n  y = 2", 2),
    "python unclosed": ("x = 1\n\nprint((1, 2)\nx = 2", 3),
    "javascript": ("const a = 1;\nconst b = 2;\nconst c = = 3;", 3),
    "javascript unclosed": ("const a = 1;\nfunction f() {\n  return 1;\n", 4),
    "typescript": ("const a: number = 1;\nlet b: = 2;", 2),
    "bash": ("echo a\nif true; then\necho b\nfi fi\n", 4),
}


@pytest.mark.parametrize("name", SYNTAX)
def test_a_syntax_error_names_its_line(run, name):
    code, line = SYNTAX[name]
    answer = run(name.split()[0], code)
    assert answer["error"]["type"] == "SyntaxError", answer["error"]
    assert answer["error"]["line"] in ((line,) if "unclosed" not in name else (line, line - 1, line + 1))
    assert answer["exit_status"] not in (0, 124, 137)


RAISES = {
    "python": ("def f():\n    raise ValueError('a bad value')\n\nf()", "ValueError", 2, "a bad value"),
    "python at top level": ("x = 1\n1 / 0", "ZeroDivisionError", 2, "division by zero"),
    "python with return": ("x = {}\nreturn x['k']", "KeyError", 2, "k"),
    "javascript": ("const x = 1;\nfunction f() { throw new TypeError('a bad type') }\nf()", "TypeError", 2, "a bad type"),
    "javascript at top level": ("const x = 1;\n\nundefinedName()", "ReferenceError", 3, "undefinedName"),
    "javascript after await": ("await 1;\nawait 2;\nthrow new RangeError('late')", "RangeError", 3, "late"),
    "javascript rejected": ("const x = 1;\nawait Promise.reject(new Error('no'))", "Error", 2, "no"),
    "typescript": ("interface A { x: number }\nconst a: A = { x: 1 };\nenum E { X }\nthrow new Error('typed ' + a.x)", "Error", 4, "typed 1"),
}


@pytest.mark.parametrize("name", RAISES)
def test_an_exception_names_itself_its_line_and_its_message(run, name):
    code, kind, line, message = RAISES[name]
    error = run(name.split()[0], code)["error"]
    assert (error["type"], error["name"]) == ("RuntimeError", kind)
    assert error["line"] == line and message in error["message"]
    assert f"line {line}" in error["stack"] or f":{line}" in error["stack"]


def test_a_failing_command_of_bash_keeps_its_status(run):
    answer = run("bash", "echo before\nexit 42")
    assert answer["exit_status"] == answer["exit_code"] == 42 and answer["stdout"] == "before\n"
    assert answer["error"]["type"] == "RuntimeError"


@pytest.mark.parametrize("language, code, status", [
    ("python", "import sys\nsys.exit(7)", 7), ("python", "raise SystemExit(0)", 0), ("python", "exit(3)", 3),
    ("javascript", "process.exit(7)", 7), ("javascript", "process.exitCode = 5", 5), ("bash", "exit 0", 0), ("bash", "false", 1),
    ("python", "import sys\nsys.exit('a last word')", 1),
])
def test_an_exit_keeps_its_status(run, language, code, status):
    answer = run(language, code)
    assert answer["exit_status"] == status and answer["success"] == (status == 0)


LEAKS = ("/work/main/", "/root", "/retort", "node_modules", "/tmp/build", "guest.py", "guest.js", "zygote")


@pytest.mark.parametrize("language, code", [
    ("python", "raise ValueError('x')"), ("python", "import nothing_like_this"), ("python", "if"), ("python", "import json\njson.loads('{')"),
    ("python", "import asyncio\nasync def f(): 1 / 0\nawait f()"), ("python", "def f(): f()\nf()"),
    ("javascript", "null.x"), ("javascript", "require('nothing-like-this')"), ("javascript", "await import('nothing-like-this')"), ("javascript", "if"),
    ("javascript", "JSON.parse('{')"), ("javascript", "(function f() { f() })()"), ("javascript", "process.stdout.write(new Error('x').stack); return new Error('y').stack"),
    ("typescript", "const x: number = null!; x.y.z"), ("typescript", "let x: ="), ("bash", "nosuchcommand"), ("bash", "if"), ("bash", "source /nowhere"),
    ("javascript", "setTimeout(() => { throw new Error('later') }, 1); await new Promise(r => setTimeout(r, 50))"),
    ("python", "import threading\nt = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()"),
])
def test_no_error_tells_a_host_path(run, language, code):
    answer = run(language, code)
    told = json.dumps({k: answer[k] for k in ("error", "stdout", "stderr", "result")})
    assert not [leak for leak in LEAKS if leak in told], told


# ---- imports ----

def test_only_allowed_imports_are_importable(run):
    answer = run("python", "import math, json\nreturn json.dumps(math.floor(2.5))", imports="math,json")
    assert answer["result"] == "2"


@pytest.mark.parametrize("code", ["import os", "from os import path", "__import__('os')", "import importlib; importlib.import_module('os')",
                                  "import json.decoder, os", "exec('import os')", "import math\nmath.os"])
def test_other_imports_are_refused_with_the_flag_that_allows_them(run, code):
    answer = run("python", code, imports="math,json,importlib")
    assert not answer["success"]
    if "math.os" not in code:
        assert "os" in answer["error"]["message"] and "--imports os" in answer["error"]["hint"]
        assert answer["error"]["type"] == "PermissionError"


def test_an_empty_list_of_imports_allows_none(run, tmp_path):
    policy = tmp_path / "p.yaml"
    policy.write_text("imports: []\n")
    assert not run("python", "import math", extra=("-p", policy))["success"]
    assert run("python", "return 1", extra=("-p", policy))["result"] == 1
