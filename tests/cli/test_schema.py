# SPDX-License-Identifier: Apache-2.0
"""retort schema validate: files, lines, and what it says about schemas that are none."""

import json
import os
import subprocess

import pytest

PERSON = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "default": 1}},
    "additionalProperties": False,
}


@pytest.fixture
def files(tmp_path):
    def write(**documents):
        paths = []
        for name, document in documents.items():
            path = tmp_path / f"{name}.json"
            path.write_text(json.dumps(document))
            paths += [f"--{name}", str(path)]
        return paths
    return write


def test_a_good_instance_is_silent(retort, files):
    done = retort("schema", "validate", *files(schema=PERSON, instance={"name": "Ada"}))
    assert (done.status, done.stdout, done.stderr) == (0, "", "")


def test_errors_are_sentences_with_their_place(retort, files):
    done = retort("schema", "validate", *files(schema=PERSON, instance={"name": 1, "age": -1}))
    assert done.status == 1
    assert done.stdout.splitlines() == [
        "/name must be a string, but is the number 1 (#/properties/name/type)",
        "/age must be at least 0, but is -1 (#/properties/age/minimum)",
    ]


def test_the_answer_as_json(retort, files):
    done = retort("schema", "validate", "--json", *files(schema=PERSON, instance={}))
    answer = json.loads(done.stdout)
    assert done.status == 1 and answer["valid"] is False
    assert [(e["instance_path"], e["keyword"]) for e in answer["errors"]] == [("", "required")]


def test_defaults_are_put_in(retort, files):
    done = retort("schema", "validate", "--defaults", *files(schema=PERSON, instance={"name": "Ada"}))
    assert done.status == 0 and json.loads(done.stdout) == {"name": "Ada", "age": 1}


def test_a_schema_that_is_none_is_a_usage_error_with_its_place(retort, files):
    done = retort("schema", "validate", *files(schema={"properties": {"a": {"type": "strin"}}}, instance=1))
    assert done.status == 2 and "#/properties/a/type" in done.stderr


def test_lines_are_answered_in_order():
    cases = [
        {"schema": {"type": "string"}, "instance": "x"},
        {"schema": {"type": "string"}, "instance": 1},
        {"schema": {"$ref": "http://example.com/n.json"}, "instance": 1, "remotes": {"http://example.com/n.json": {"minimum": 2}}},
        {"schema": {"format": "ipv4"}, "instance": "1.2.3"},
        {"schema": {"format": "ipv4"}, "instance": "1.2.3", "assert_format": True},
        {"schema": {"type": 7}, "instance": 1},
    ]
    text = "\n".join(map(json.dumps, cases)) + "\nno json\n"
    done = subprocess.run([os.environ["RETORT"], "schema", "validate", "--jsonl"], input=text, text=True,
                          capture_output=True, timeout=60)
    answers = list(map(json.loads, done.stdout.splitlines()))
    assert [a["valid"] for a in answers] == [True, False, False, True, False, False, False]
    assert answers[0]["errors"] == [] and answers[1]["errors"][0]["keyword"] == "type"
    assert answers[5]["error"] == "invalid" and "#/type" in answers[5]["errors"][0]["message"]
