# SPDX-License-Identifier: Apache-2.0
# CSV Parser: what is in a table of text. pandas, where it is installed, does the same work faster.
import csv
import io
import json
import sys


def text_of(inputs):
    if inputs.get("content") is not None:
        return inputs["content"]
    with open(inputs["path"], encoding="utf-8-sig", newline="") as file:
        return file.read()


def is_number(text, kind):
    try:
        kind(text)
        return True
    except ValueError:
        return False


def type_of(values):
    present = [v for v in values if v != ""]
    if present and len(present) == len(values) and all(is_number(v, int) for v in present):
        return "int64"
    return "float64" if present and all(is_number(v, float) for v in present) else "object"


def value_of(text, kind):
    if text == "":
        return None
    return int(text) if kind == "int64" else float(text) if kind == "float64" else text


def with_standard_library(text, delimiter):
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row]
    header, body = rows[0], rows[1:]
    body = [(row + [""] * len(header))[:len(header)] for row in body]
    types = {name: type_of([row[i] for row in body]) for i, name in enumerate(header)}
    preview = [{n: value_of(v, types[n]) for n, v in zip(header, row)} for row in body[:5]]
    size = sum(sys.getsizeof(cell) for row in body for cell in row)
    return len(body), header, types, size, preview


def with_pandas(pandas, text, delimiter):
    frame = pandas.read_csv(io.StringIO(text), sep=delimiter)
    types = {name: "object" if kind not in ("int64", "float64") else kind
             for name, kind in frame.dtypes.astype(str).items()}
    size = int(frame.memory_usage(deep=True).sum())
    return len(frame), list(frame.columns), types, size, json.loads(frame.head(5).to_json(orient="records"))


def parse(inputs):
    text, delimiter = text_of(inputs), inputs.get("delimiter", ",")
    if not text.strip():
        raise ValueError("the CSV text is empty")
    try:
        import pandas
    except ImportError:
        pandas = None
    found = with_pandas(pandas, text, delimiter) if pandas else with_standard_library(text, delimiter)
    rows, columns, types, size, preview = found
    return {"rowCount": rows, "columnCount": len(columns), "columns": columns, "dtypes": types,
            "memoryUsage": size, "preview": preview}


try:
    result = {"success": True, "data": parse(inputs)}
except (KeyError, OSError, ValueError, csv.Error) as why:
    result = {"success": False, "error": f"{type(why).__name__}: {why}"}
return result
