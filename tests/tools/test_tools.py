# SPDX-License-Identifier: Apache-2.0
"""`retort tools`: the sample tools run in cells, others are imported and found, browsing stays small."""

import json
import pathlib

import pytest

from calling import ROOT, call

TOOLBOX = ROOT / "toolbox"
DENIED = {"stripe_payment": "api.stripe.com", "twilio_sms": "api.twilio.com", "email_sender": "smtp.example.com"}


def expected(name):
    return {
        "csv_parser": lambda r: r["data"]["rowCount"] == 3 and r["data"]["dtypes"]["age"] == "int64"
        and r["data"]["preview"][2]["score"] is None,
        "json_transformer": lambda r: r["data"] == [{"firstName": "Ada", "home": {"postcode": "W1"}}],
        "pdf_extractor": lambda r: r["data"]["pageCount"] == 1 and "Hello from a PDF" in r["data"]["preview"],
        "excel_reader": lambda r: r["data"]["columns"] == ["city", "sales"] and r["data"]["rowCount"] == 2,
        "statistical_analyzer": lambda r: abs(r["data"]["sales"]["skewness"] - 1.2632475547) < 1e-6
        and abs(r["data"]["sales"]["kurtosis"] - 1.3215689477) < 1e-6,
        "trend_detector": lambda r: abs(r["data"]["slope"] - 1.0) < 1e-9 and r["data"]["trend"] == "increasing",
        "file_watcher": lambda r: r["data"]["events"] == [],
        "data_validator": lambda r: r["valid"] is False and r["path"] == ["age"],
    }[name]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    flags = ("--data-dir", tmp_path_factory.mktemp("tools") / "data")
    ended = call("tools", "seed", *flags)
    assert ended.status == 0 and "11 tools, 11 of them new" in ended.stdout, ended
    return flags


def sample(name):
    return json.loads((TOOLBOX / name / "tool.json").read_text())["sample_input"]


def test_seeding_again_adds_nothing(data):
    assert "11 tools, 0 of them new" in call("tools", "seed", *data).stdout


def test_the_folder_and_the_program_have_the_same_tools(data):
    listed = {tool["name"] for tool in json.loads(call("tools", "list", "--json", *data).stdout)}
    assert listed == {f"toolbox:{path.parent.name}" for path in TOOLBOX.glob("*/tool.json")}


@pytest.mark.parametrize("name", sorted(path.parent.name for path in TOOLBOX.glob("*/tool.json")))
def test_a_sample_tool_runs_on_its_sample(data, name):
    ended = call("tools", "call", f"toolbox:{name}", json.dumps(sample(name)), *data)
    if name in DENIED:
        assert ended.status == 2 and f"allowed_hosts: [{DENIED[name]}]" in ended.stderr, ended
    else:
        result = json.loads(ended.stdout)
        assert ended.status == 0 and result["success"] and expected(name)(result), ended


@pytest.mark.parametrize("name", sorted(DENIED))
def test_code_that_needs_the_network_says_which_grant_it_lacks(name, run):
    language, code = next((lang, path) for lang, path in (("python", TOOLBOX / name / "code.py"),
                                                          ("javascript", TOOLBOX / name / "code.js")) if path.exists())
    answer = run(language, code.read_text(), input=sample(name))
    assert answer["result"]["success"] is False
    assert f"allowed_hosts: {DENIED[name]}" in answer["result"]["error"]


def test_using_a_tool_raises_its_count(data):
    def uses():
        return json.loads(call("tools", "show", "toolbox:trend_detector", *data).stdout)["uses"]

    before = uses()
    call("tools", "call", "toolbox:trend_detector", '{"values":[2,1]}', *data)
    assert uses() == before + 1


def test_browsing_shows_no_code_and_stays_within_two_hundred_tokens(data):
    for category in ("data", "api", "documents", "analytics", "automation"):
        text = call("tools", "list", "--category", category, *data).stdout
        assert 0 < len(text) <= 800 and "import " not in text and "properties" not in text


def test_an_unknown_tool_is_named_with_a_suggestion(data):
    ended = call("tools", "show", "toolbox:csv_parsr", *data)
    assert ended.status == 2 and "did you mean toolbox:csv_parser?" in ended.stderr


def test_imported_tools_are_found_and_cannot_be_called(tmp_path):
    flags = ("--data-dir", tmp_path / "data")
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([
        {"name": "Gmail_SendEmail", "description": "Send an email using the Gmail API.", "category": "mail"},
        {"name": "weather/forecast", "description": "Forecast", "category": "weather",
         "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}]))
    assert call("tools", "import", path, *flags).stdout == "2 tools imported\n"
    lines = b'{"query": "send an email"}\n\n{"query": "do I need an umbrella", "limit": 1}\n'
    answers = [json.loads(line) for line in call("tools", "search", "--jsonl", *flags, stdin=lines).stdout.splitlines()]
    assert answers[0]["query"] == "send an email" and answers[0]["names"][0] == "Gmail_SendEmail"
    assert answers[1]["names"] == ["weather/forecast"]
    hits = json.loads(call("tools", "search", "mail my boss", "--json", *flags).stdout)
    assert hits[0]["name"] == "Gmail_SendEmail" and "input_schema" not in hits[0]
    assert "nobody here provides it" in call("tools", "call", "Gmail_SendEmail", *flags).stderr


@pytest.mark.parametrize("args, why", [
    (("search",), "usage"), (("search", "a", "--limit", "0"), "--limit"), (("fly",), "usage"),
    (("search", "a", "b", "c"), "one too many"), (("list", "--nonsense"), "nonsense"),
    (("import", "/nonexistent"), "No such file"), (("call", "toolbox:csv_parser", "{"), "csv_parser")])
def test_what_makes_no_sense_is_refused(data, args, why):
    ended = call("tools", *args, *data)
    assert ended.status != 0 and why in ended.stderr, ended


def test_a_line_that_is_no_question_is_named(data):
    ended = call("tools", "search", "--jsonl", *data, stdin=b'{"query": "x"}\n{"quest": 1}\n')
    assert ended.status == 2 and "line 2" in ended.stderr


def test_stubs_of_a_tool(data):
    ended = call("tools", "stubs", "toolbox:csv_parser", *data)
    assert ended.status == 0 and "csvParser(args?: CsvParserArgs)" in ended.stdout, ended
    python = call("tools", "stubs", "toolbox:csv_parser", "--language", "python", *data).stdout
    compile(python, "stub", "exec")
    assert "def csv_parser(*, content: str = ..." in python
    assert call("tools", "stubs", "toolbox:csv_parser", "--language", "ruby", *data).status == 2


def test_prompts(data):
    whole = call("tools", "prompt", *data).stdout
    assert "FUNCTIONS" in whole and "data: 2 tools" in whole and len(whole) < 4000
    assert "1. toolbox:csv_parser" in call("tools", "prompt", "--category", "data", *data).stdout
    assert "Code template" in call("tools", "prompt", "csv_parser", *data).stdout
    assert call("tools", "prompt", "nobody", *data).status != 0
