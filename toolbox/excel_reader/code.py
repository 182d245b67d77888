# SPDX-License-Identifier: Apache-2.0
# Excel Reader: a sheet of a workbook. openpyxl, where it is installed, reads it; otherwise we read the
# XML in the archive ourselves, without dates' formats.
import base64
import io
import re
import zipfile
from xml.etree import ElementTree

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
REL = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
PART_MAX = 64 << 20   # an archive may hold far more than it weighs


def bytes_of(inputs):
    if inputs.get("content_base64") is not None:
        return base64.b64decode(inputs["content_base64"])
    with open(inputs["path"], "rb") as file:
        return file.read()


def with_package(openpyxl, data, sheet):
    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    page = book[sheet] if sheet else book.worksheets[0]
    return [list(row) for row in page.iter_rows(values_only=True)]


def part(archive, name):
    if archive.getinfo(name).file_size > PART_MAX:
        raise ValueError(f"{name} is larger than {PART_MAX} bytes")
    return ElementTree.fromstring(archive.read(name))


def sheet_path(archive, sheet):
    links = {link.get("Id"): link.get("Target") for link in part(archive, "xl/_rels/workbook.xml.rels")}
    sheets = part(archive, "xl/workbook.xml").find(f"{MAIN}sheets")
    for entry in sheets:
        if not sheet or entry.get("name") == sheet:
            return "xl/" + links[entry.get(REL)].removeprefix("/xl/")
    raise KeyError(f"there is no sheet {sheet}")


def column_of(place):
    number = 0
    for letter in re.match("[A-Z]+", place)[0]:
        number = number * 26 + ord(letter) - 64
    return number - 1


def value_of(cell, shared):
    kind, value = cell.get("t"), cell.findtext(f"{MAIN}v")
    if kind == "inlineStr":
        return "".join(text.text or "" for text in cell.iter(f"{MAIN}t"))
    if value is None:
        return None
    if kind == "s":
        return shared[int(value)]
    if kind == "b":
        return value == "1"
    if kind in ("str", "e"):
        return value
    number = float(value)
    return int(number) if number.is_integer() else number


def with_standard_library(data, sheet):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        shared = []
        if "xl/sharedStrings.xml" in archive.namelist():
            shared = ["".join(t.text or "" for t in item.iter(f"{MAIN}t")) for item in part(archive, "xl/sharedStrings.xml")]
        rows = []
        for row in part(archive, sheet_path(archive, sheet)).iter(f"{MAIN}row"):
            cells = {column_of(cell.get("r")): value_of(cell, shared) for cell in row.iter(f"{MAIN}c")}
            rows.append([cells.get(i) for i in range(max(cells, default=-1) + 1)])
        return rows


def read(inputs):
    data, sheet = bytes_of(inputs), inputs.get("sheet")
    try:
        import openpyxl
    except ImportError:
        openpyxl = None
    rows = with_package(openpyxl, data, sheet) if openpyxl else with_standard_library(data, sheet)
    if not rows:
        return {"rowCount": 0, "columnCount": 0, "columns": [], "preview": []}
    columns = [str(name) if name is not None else f"column{i + 1}" for i, name in enumerate(rows[0])]
    body = [(row + [None] * len(columns))[:len(columns)] for row in rows[1:]]
    return {"rowCount": len(body), "columnCount": len(columns), "columns": columns,
            "preview": [dict(zip(columns, row)) for row in body[:10]]}


try:
    result = {"success": True, "data": read(inputs)}
except (KeyError, OSError, ValueError, zipfile.BadZipFile, ElementTree.ParseError) as why:
    result = {"success": False, "error": f"{type(why).__name__}: {why}"}
return result
