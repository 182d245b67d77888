# SPDX-License-Identifier: Apache-2.0
"""--input in all its forms."""

import json

import pytest


@pytest.mark.parametrize("value", [None, True, 0, -1.5, "text", "", [], {}, [1, [2]], {"a": None}, "é\0\n", 2 ** 80])
def test_any_json_value_arrives_as_it_is(run, value):
    assert run("python", "return [input_data]", input=value)["result"] == [value]


@pytest.mark.parametrize("language, code", [("javascript", "return inputs"), ("python", "return inputs")])
def test_a_large_value_arrives_whole(run, tmp_path, language, code):
    value = {"rows": [{"i": i, "text": "x" * 50} for i in range(20000)]}
    (tmp_path / "in.json").write_text(json.dumps(value))
    assert run(language, code, input=f"@{tmp_path}/in.json")["result"] == value


def test_a_large_value_arrives_whole_in_bash(run, tmp_path):
    (tmp_path / "in.json").write_text(json.dumps({"rows": list(range(100000))}))
    answer = run("bash", "wc -c", input=f"@{tmp_path}/in.json")
    assert answer["success"], answer["error"]
    assert answer["result"] > 500000


def test_a_file_that_is_not_json_arrives_as_text(run, tmp_path):
    (tmp_path / "in.csv").write_text("a,b\n1,2\n")
    for language, code in (("python", "return input_data"), ("javascript", "return input"), ("bash", "cat")):
        assert run(language, code, input=f"@{tmp_path}/in.csv")["result"] in ("a,b\n1,2\n", "a,b\n1,2")


def test_sixty_megabytes_of_csv_are_summed(run, tmp_path):
    line = "".join(f"{i},{i % 7}\n" for i in range(100000))
    repeats = (60 << 20) // len(line) + 1
    with open(tmp_path / "big.csv", "w") as f:
        for _ in range(repeats):
            f.write(line)
    answer = run("python", "return sum(int(row.split(',')[1]) for row in input_data.splitlines())", input=f"@{tmp_path}/big.csv", memory="1G")
    assert answer["success"], answer["error"]
    assert answer["result"] == repeats * sum(i % 7 for i in range(100000))


def test_an_input_larger_than_memory_is_refused_in_words(retort, tmp_path):
    with open(tmp_path / "big.csv", "wb") as f:
        f.truncate(40 << 20)
    done = retort("run", "-l", "python", "-c", "1", "--input", f"@{tmp_path}/big.csv", "--memory", "32M")
    assert done.status != 0 and "--memory" in done.stderr


@pytest.mark.parametrize("text, place", [('{"a": 1,}', "line 1, column 9"), ('{"a":\n  nope}', "line 2, column 3"), ("[1, 2", "line 1"), ("", "JSON"), ("{'a': 1}", "line 1, column 2")])
def test_broken_json_is_answered_with_its_place(retort, tmp_path, text, place):
    done = retort("run", "-l", "python", "-c", "1", "--input", text)
    assert done.status == 2 and place in done.stderr
    (tmp_path / "broken.json").write_text(text)
    done = retort("run", "-l", "python", "-c", "1", "--input", f"@{tmp_path}/broken.json")
    assert done.status == 2 and "broken.json" in done.stderr


@pytest.mark.parametrize("path", ["@/nowhere/x.json", "@/usr", "@", "@/etc"])
def test_a_file_that_cannot_be_read_is_named(retort, path):
    done = retort("run", "-l", "python", "-c", "1", "--input", path)
    assert done.status == 2 and done.stderr.startswith("retort: --input")


def test_text_that_is_not_utf8_is_answered_for(run, tmp_path):
    (tmp_path / "in.csv").write_bytes(b"a,\xff\xfe\n")
    for language, code in (("python", "return len(input_data)"), ("javascript", "return input.length"), ("bash", "wc -c")):
        answer = run(language, code, input=f"@{tmp_path}/in.csv")
        assert answer["success"] or answer["error"]["message"]


def test_keys_that_are_no_names_do_no_harm(run):
    value = {"a b": 1, "1x": 2, "__proto__": 3, "constructor": 4, "return": 5, "print": 6, "class": 7, "": 8, "ok": 9}
    for language, code in (("python", "return [inputs, ok]"), ("javascript", "return [Object.keys(inputs).length, ok]"), ("typescript", "return [1, ok]")):
        answer = run(language, code, input=value)
        assert answer["success"] and answer["result"][1] == 9, (language, answer["error"])
    assert run("bash", "RESULT=$INPUT_ok", input=value)["result"] == 9


def test_a_key_cannot_become_a_variable_that_bash_obeys(run):
    answer = run("bash", "RESULT=fine", input={"x; touch /work/out/pwned": 1, "$(touch /work/out/pwned)": 2, "a": "$(touch /work/out/pwned)", "BASH_ENV": "/x"})
    assert answer["result"] == "fine" and answer["artifacts"] == []
