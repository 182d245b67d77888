# SPDX-License-Identifier: Apache-2.0
"""Presets and policy files."""

import json

import pytest


def with_policy(run, tmp_path, yaml, code="return 1", **more):
    path = tmp_path / "policy.yaml"
    path.write_text(yaml)
    return run("python", code, extra=("-p", path), **more)


@pytest.mark.parametrize("name", ["default", "quick", "voice", "code-mode", "small", "long"])
def test_every_preset_runs_plain_code(run, name):
    assert run("python", "return 1", policy=name)["result"] == 1


def test_the_voice_preset_is_the_default_of_the_seed(run, retort):
    voice = json.loads(retort("policies", "--json").stdout)["voice"]
    assert (voice["timeout_ms"], voice["memory_bytes"], voice["imports"]) == (5000, 128 << 20, ["math", "json", "datetime"])
    assert (voice["network"], voice["files"]) == ("none", "none")
    assert run("python", "import math, json, datetime\nreturn 1", policy="voice")["result"] == 1
    assert not run("python", "import os", policy="voice")["success"]
    answer = run("python", "x = bytearray(200 << 20)\nreturn 1", policy="voice")
    assert answer["status"] == "MEMORY_ERROR"


def test_a_file_sets_every_key(run, tmp_path):
    answer = with_policy(run, tmp_path, """
extends: quick
timeout: 7s
cpu: 3s
memory: 200M
scratch: 16M
output: 2M
code_size: 5K
processes: 12
files: sandboxed
subprocess: deny
isolation: standard
network: none
read:
  - /etc/hostname
imports: [math, os]
env:
  REGION: eu
  NAME: "x y"
""", "import os, math\nreturn [os.environ['REGION'], os.environ['NAME'], open('/etc/hostname').read() != 'cell\\n']")
    assert answer["success"], answer["error"]
    assert answer["result"][:2] == ["eu", "x y"]
    assert answer["attestation"]["memory"]["bytes"] == 200 << 20 and answer["attestation"]["scratch_bytes"] == 16 << 20


def test_an_env_may_be_a_list_and_a_map_may_be_inline(run, tmp_path):
    assert with_policy(run, tmp_path, "env: [A=1, B=2]", "import os\nreturn os.environ['A'] + os.environ['B']")["result"] == "12"
    assert with_policy(run, tmp_path, "env: {A: 1, B: 2}", "import os\nreturn os.environ['A'] + os.environ['B']")["result"] == "12"


def test_flags_refine_the_file_wherever_they_stand(retort, tmp_path):
    (tmp_path / "p.yaml").write_text("timeout: 20s\n")
    for args in (("--timeout", "300ms", "-p", tmp_path / "p.yaml"), ("-p", tmp_path / "p.yaml", "--timeout", "300ms")):
        assert retort("run", "-l", "bash", "-c", "sleep 5", *args).status == 124


def test_an_empty_file_is_the_default(run, tmp_path):
    assert with_policy(run, tmp_path, "")["result"] == 1
    assert with_policy(run, tmp_path, "# only a comment\n")["result"] == 1


BAD = {
    "an unknown key": ("timeuot: 5s", ["timeuot", "did you mean timeout", "line 1"]),
    "an unknown key far from all": ("zzzzzzzzzz: 5", ["zzzzzzzzzz", "line 1"]),
    "a bad value": ("memory: 256M\ntimeout: soon", ["timeout", "line 2"]),
    "a value out of range": ("timeout: 1h", ["timeout", "line 1"]),
    "a negative value": ("memory: -5M", ["memory"]),
    "an unknown choice": ("files: everything", ["none read_only sandboxed"]),
    "an unknown preset": ("extends: nothing", ["nothing"]),
    "an anchor": ("env: &a {X: 1}\n", ["anchors"]),
    "an alias": ("timeout: *x\n", ["anchors"]),
    "a list where a value belongs": ("timeout: [1s, 2s]", ["timeout", "one plain value"]),
    "a map where a list belongs": ("read: {a: b}", ["read"]),
    "a nested list": ("imports: [[math]]", ["line 1"]),
    "a nested map": ("env: {A: {B: C}}", ["line 1"]),
    "a list of keys": ("- timeout\n- 5s", ["key: value"]),
    "a plain word": ("timeout", ["key: value"]),
    "no YAML at all": ("timeout: [5s\nmemory: }", ["line"]),
    "tabs": ("env:\n\tX: 1", ["line 2"]),
    "a read path that is not there": ("read: [/nowhere/at/all]", ["/nowhere/at/all"]),
    "a huge file": ("# " + "x" * 100000, ["policy"]),
    "a NUL": ("timeout: \"5s\\0\"", ["timeout"]),
    "two documents": ("timeout: 5s\n---\nmemory: 1G\n", ["document"]),
    "a key twice": ("timeout: 5s\ntimeout: 100s\n", ["timeout"]),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_answered_in_words(retort, tmp_path, name):
    yaml, words = BAD[name]
    path = tmp_path / "policy.yaml"
    path.write_text(yaml)
    done = retort("run", "-l", "python", "-c", "1", "-p", path)
    assert done.status == 2 and done.stderr.startswith("retort: ")
    assert all(word in done.stderr for word in words), done.stderr


def test_extends_does_not_undo_what_stands_before_it(run, tmp_path):
    answer = with_policy(run, tmp_path, "memory: 100M\nextends: quick\n")
    assert answer["attestation"]["memory"]["bytes"] == 100 << 20


def test_a_directory_or_a_missing_file_is_named(retort, tmp_path):
    for path in (tmp_path, tmp_path / "missing.yaml"):
        done = retort("run", "-l", "python", "-c", "1", "-p", path)
        assert done.status == 2 and str(path) in done.stderr


def test_strict_isolation_runs_or_says_what_is_missing(retort):
    done = retort("run", "-l", "bash", "-c", "echo ok", "--isolation", "strict")
    assert done.stdout == "ok\n" or done.status == 3 and "isolation strict" in done.stderr
