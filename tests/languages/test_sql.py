# SPDX-License-Identifier: Apache-2.0
"""SQL: the input as tables, parameters, files, types that come back as they went in."""

import json
import pathlib
import sqlite3
import tempfile

import pytest

SALES = {"sales": [{"id": 1, "region": "north", "amount": 2.5, "paid": True, "tags": ["a", {"b": 1}]},
                   {"id": 2, "region": "south", "amount": 3, "paid": False, "note": "x"}],
         "regions": [{"name": "north", "boss": "Ada"}], "floor": 2.6}


def test_each_array_is_a_table_and_types_come_back(execute):
    rows = execute("sql", "SELECT * FROM sales ORDER BY id", input=SALES)["result"]
    assert rows == [{"id": 1, "region": "north", "amount": 2.5, "paid": True, "tags": ["a", {"b": 1}], "note": None},
                    {"id": 2, "region": "south", "amount": 3, "paid": False, "tags": None, "note": "x"}]


def test_tables_are_joined_and_the_last_query_answers(execute):
    code = """-- several statements
        CREATE TABLE total AS SELECT region, sum(amount) AS amount FROM sales GROUP BY region;
        SELECT 'not this';
        SELECT boss, amount FROM total JOIN regions ON name = region; -- the end
    """
    assert execute("sql", code, input=SALES)["result"] == [{"boss": "Ada", "amount": 2.5}]


def test_an_array_alone_is_called_input(execute):
    assert execute("sql", "SELECT sum(value) AS s FROM input", input=[1, 2, 3.5])["result"] == [{"s": 6.5}]
    assert execute("sql", "SELECT sum(a) AS s FROM input", input=[{"a": 1}, {"a": 2}])["result"] == [{"s": 3}]
    assert execute("sql", "SELECT count(*) AS n FROM t", input={"t": []})["result"] == [{"n": 0}]


def test_parameters_come_by_name_and_by_position(execute):
    code = "SELECT id FROM sales WHERE amount > :floor AND region = $region"
    answer = execute("sql", code, input={**SALES, "params": {"region": "south"}})
    assert answer["result"] == [{"id": 2}]
    assert execute("sql", "SELECT ? AS a, ? AS b", input={"params": [[1, 2], "it's"]})["result"] == [{"a": "[1,2]", "b": "it's"}]
    error = execute("sql", "SELECT :gone", input={})["error"]
    assert ":gone" in error["message"] and "params" in error["message"]


def test_a_text_is_csv(execute):
    text = "name;amount;code;note\r\nAda;1,5;007;\r\n\"Bo; \"\"B\"\"\";2;008;x\r\n"
    rows = execute("sql", "SELECT *, typeof(amount) AS t FROM input", input=text)["result"]
    assert rows[1] == {"name": 'Bo; "B"', "amount": "2", "code": "008", "note": "x", "t": "text"}
    rows = execute("sql", "SELECT sum(n) AS n, max(x) AS x FROM input", input="n,x\n1,2.5\n2,\n")["result"]
    assert rows == [{"n": 3, "x": 2.5}]


def test_large_integers_keep_their_digits(execute):
    big = 2 ** 70
    assert execute("sql", "SELECT a FROM input", input=[{"a": big}])["result"] == [{"a": str(big)}]
    assert execute("sql", "SELECT a FROM input", input=[{"a": 2 ** 62}])["result"] == [{"a": 2 ** 62}]


def test_names_are_kept_apart(execute):
    rows = execute("sql", 'SELECT a.x, b.x, "odd ""name" FROM a, b', input={"a": [{"x": 1, 'odd "name': 3}], "b": [{"x": 2}]})
    assert rows["result"] == [{"x": 1, "x:1": 2, 'odd "name': 3}]


def test_more_rows_than_allowed_are_an_error_that_says_so(execute):
    code = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 50) SELECT x FROM c"
    assert len(execute("sql", code, policy={"env": {"SQL_ROWS": "50"}})["result"]) == 50
    error = execute("sql", code, policy={"env": {"SQL_ROWS": "49"}})["error"]
    assert error["type"] == "ResourceLimitError" and "LIMIT" in error["message"]


@pytest.fixture
def folder():
    """One that others can reach: cells are somebody else."""
    with tempfile.TemporaryDirectory() as name:
        yield pathlib.Path(name)


def test_files_are_tables_too(run, folder):
    (folder / "a.csv").write_text("k,v\nx,1\ny,2\n")
    (folder / "b.json").write_text(json.dumps([{"k": "x", "w": 10}]))
    (folder / "c.jsonl").write_text('{"k": "x", "z": 5}\n\n{"k": "y"}\n')
    with sqlite3.connect(folder / "d.db") as db:
        db.execute("CREATE TABLE t AS SELECT 7 AS a")
    for name in ("", "a.csv", "b.json", "c.jsonl", "d.db"):
        (folder / name).chmod(0o755)
    code = (f"ATTACH '{folder}/d.db' AS d; SELECT a.k, v, w, z, t.a FROM '{folder}/a.csv' a JOIN '{folder}/b.json' b USING (k) "
            f"JOIN '{folder}/c.jsonl' c USING (k), d.t")
    answer = run("sql", code, read=str(folder))
    assert answer["result"] == [{"k": "x", "v": 1, "w": 10, "z": 5, "a": 7}], answer["error"]
    assert not run("sql", f"ATTACH '{folder}/d.db' AS d; DELETE FROM d.t", read=str(folder))["success"]
    missing = run("sql", f"SELECT 1;\nSELECT * FROM '{folder}/e.csv'", read=str(folder))["error"]
    assert missing["line"] == 2 and "e.csv" in missing["message"]


def test_a_hundred_thousand_rows(execute):
    rows = [{"id": i, "name": f"n{i % 100}", "x": i / 2} for i in range(100_000)]
    answer = execute("sql", "SELECT name, sum(x) AS s FROM rows GROUP BY name ORDER BY s DESC LIMIT 1", input={"rows": rows})
    assert answer["result"] == [{"name": "n99", "s": sum(i / 2 for i in range(99, 100_000, 100))}]
