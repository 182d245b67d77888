# SPDX-License-Identifier: Apache-2.0
"""The commands beside run: help, version, languages, policies, validate, doctor."""

import json

import pytest


@pytest.mark.parametrize("command", ["run", "validate", "languages", "policies", "doctor"])
def test_every_command_has_help(retort, command):
    done = retort(command, "--help")
    assert done.status == 0 and done.stdout.startswith(f"Usage: retort {command}") and done.stderr == ""


def test_the_program_tells_its_commands_and_its_version(retort):
    assert all(c in retort("--help").stdout for c in ("run", "validate", "languages", "policies", "doctor"))
    version = retort("--version")
    assert version.status == 0 and any(ch.isdigit() for ch in version.stdout)


def test_no_command_is_answered_with_help(retort):
    done = retort()
    assert done.status in (0, 2) and "retort run" in done.stdout + done.stderr


@pytest.mark.parametrize("args", [("languages", "--jsno"), ("policies", "--jsno"), ("doctor", "--jsno"), ("validate", "--jsno", "/etc/hosts")])
def test_an_unknown_option_is_not_ignored(retort, args):
    assert retort(*args).status == 2


def test_languages_as_json(retort):
    languages = {row["name"]: row for row in json.loads(retort("languages", "--json").stdout)}
    assert set(languages) >= {"python", "javascript", "typescript", "bash"}
    assert all(languages[name]["available"] for name in ("python", "javascript", "typescript", "bash", "sql", "wasm"))
    assert all(row["version"][0].isdigit() if row["available"] else name in row["detail"] for name, row in languages.items())


def test_policies_as_json(retort):
    policies = json.loads(retort("policies", "--json").stdout)
    assert {"default", "quick", "voice", "code-mode", "small", "long"} <= set(policies)
    default = policies["default"]
    assert (default["timeout_ms"], default["memory_bytes"], default["network"]) == (30000, 512 << 20, "none")


def test_doctor_is_content_with_this_host(retort):
    done = retort("doctor")
    assert done.status == 0 and "MISSING" not in done.stdout and "a sealed run" in done.stdout


# ---- validate ----

def check(retort, tmp_path, name, code, *more):
    path = tmp_path / name
    path.write_text(code) if isinstance(code, str) else path.write_bytes(code)
    done = retort("validate", path, *more)
    assert done.status in (0, 1), done.stderr
    risks = json.loads(done.stdout)
    assert (done.status == 0) == (risks == [])
    return [(r["line"], r["kind"]) for r in risks]


CLEAN = {
    "a.py": "import math\n# import os\nx = 'import os'\nprint(math.pi)\nreturn x",
    "a.js": "// eval('x')\nconst s = \"eval(1)\"; evaluate(1); function evaluate(x) { return x }\nreturn s",
    "a.ts": "interface A { x: number }\nconst a: A = { x: 1 };\nenum E { A }\nreturn a.x",
    "a.sh": "echo hi\nfor i in 1 2; do echo $i; done",
}


@pytest.mark.parametrize("name", CLEAN)
def test_clean_code_has_no_risks(retort, tmp_path, name):
    assert check(retort, tmp_path, name, CLEAN[name]) == []


RISKY = {
    "python import": ("a.py", "x = 1\nimport os\n", [(2, "import")]),
    "python from": ("a.py", "from subprocess import run\n", [(1, "import")]),
    "python import inside": ("a.py", "def f():\n    import socket.x\n", [(2, "import")]),
    "python calls": ("a.py", "eval('1')\nexec('x')\n__import__('os')\nopen('f')", [(1, "call"), (2, "call"), (3, "call"), (4, "call")]),
    "python introspection": ("a.py", "().__class__.__bases__[0].__subclasses__()", [(1, "introspection"), (1, "introspection")]),
    "javascript eval": ("a.js", "const x = 1;\neval('x')", [(2, "eval")]),
    "javascript require": ("a.js", "\nconst c = require('child_process');", [(2, "import")]),
    "javascript node: require": ("a.js", "require('node:fs')", [(1, "import")]),
    "javascript function": ("a.js", "new Function('return 1')();\nFunction('x')", [(1, "eval"), (2, "eval")]),
    "javascript import": ("a.mjs", "import fs from 'fs';", [(1, "import")]),
    "javascript dynamic import": ("a.js", "await import('fs')", [(1, "import")]),
    "javascript prototype": ("a.js", "({}).__proto__.x = 1", [(1, "prototype")]),
    "typescript": ("a.ts", "interface A { x: number }\nconst c: any = require('child_process');\nreturn eval('1')", [(2, "import"), (3, "eval")]),
    "typescript generics": ("a.ts", "type T<K> = { k: K };\n\nconst f = <X,>(x: X): X => x;\neval('1')", [(4, "eval")]),
    "bash syntax": ("a.sh", "echo a\nif true; then\n", [(3, "syntax")]),
    "python syntax": ("a.py", "x = 1\nif x ==:\n", [(2, "syntax")]),
    "javascript syntax": ("a.js", "const a = 1;\nconst b = = 2;", [(2, "syntax")]),
}


@pytest.mark.parametrize("name", RISKY)
def test_a_risk_is_listed_with_its_line(retort, tmp_path, name):
    file, code, risks = RISKY[name]
    assert check(retort, tmp_path, file, code) == risks


def test_risky_code_is_looked_at_and_not_run(retort, tmp_path):
    path = tmp_path / "a.py"
    path.write_text("import time\nwhile True: time.sleep(1)")
    assert retort("validate", path).seconds < 5


@pytest.mark.parametrize("name, code", [("unknown.xyz", "x"), ("noending", "x"), ("empty.py", ""), ("binary.py", b"\x00\xff" * 100), ("bad.py", b"caf\xe9 = 1"),
                                        ("deep.py", "(" * 5000 + ")" * 5000), ("deep.js", "[" * 20000), ("nul.js", b"let a\x00b = 1")],
                         ids=lambda value: value if isinstance(value, str) and "." in value else "")
def test_odd_files_are_answered_for(retort, tmp_path, name, code):
    path = tmp_path / name
    path.write_text(code) if isinstance(code, str) else path.write_bytes(code)
    done = retort("validate", path)
    assert 0 <= done.status <= 2, done
    assert done.status < 2 and isinstance(json.loads(done.stdout), list) or done.stderr.startswith("retort: ")


def test_the_language_may_be_given(retort, tmp_path):
    assert check(retort, tmp_path, "code.txt", "import os", "-l", "python") == [(1, "import")]
    assert retort("validate", tmp_path / "code.txt", "-l", "cobol").status == 2
    assert retort("validate").status == 2
