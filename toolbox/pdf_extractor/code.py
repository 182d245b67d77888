# SPDX-License-Identifier: Apache-2.0
# PDF Extractor: a PDF's pages and text. PyPDF2, where it is installed, reads it; otherwise we look at
# the file's objects ourselves, which is enough for files that are not encrypted.
import base64
import io
import re
import zlib

PREVIEW_PAGES = 5


def bytes_of(inputs):
    if inputs.get("content_base64") is not None:
        return base64.b64decode(inputs["content_base64"])
    with open(inputs["path"], "rb") as file:
        return file.read()


def with_package(PyPDF2, data):
    reader = PyPDF2.PdfReader(io.BytesIO(data))
    info = reader.metadata or {}
    pages = [page.extract_text() or "" for page in reader.pages[:PREVIEW_PAGES]]
    return len(reader.pages), info.get("/Title"), info.get("/Author"), info.get("/Subject"), pages


def unescape(text):
    plain = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}
    text = re.sub(rb"\\([0-7]{1,3})", lambda m: bytes([int(m[1], 8) & 255]), text)
    text = re.sub(rb"\\(.)", lambda m: plain.get(m[1], m[1]), text, flags=re.S)
    if text.startswith(b"\xfe\xff"):
        return text[2:].decode("utf-16-be", "replace")
    return text.decode("latin-1")


STRING = rb"\(((?:[^()\\]|\\.)*)\)"


def text_of(stream):
    lines = []
    for part in re.finditer(rb"\[((?:[^\[\]\\(]|\((?:[^()\\]|\\.)*\))*)\]\s*TJ|" + STRING + rb"\s*(?:Tj|'|\")",
                            stream, re.S):
        if part[1] is None:
            lines.append(unescape(part[2]))
        else:
            pieces = re.findall(STRING + rb"|(-?\d+(?:\.\d+)?)", part[1], re.S)
            lines.append("".join(" " if number and float(number) < -200 else unescape(text) if not number else ""
                                 for text, number in pieces))
    return "\n".join(line for line in lines if line.strip())


def stream_of(body):
    found = re.search(rb"stream\r?\n(.*?)\r?\n?endstream", body, re.S)
    if not found:
        return b""
    if b"FlateDecode" not in body[:found.start()]:
        return found[1]
    try:
        return zlib.decompressobj().decompress(found[1])
    except zlib.error:
        return b""


def objects_of(data):
    found = {int(m[1]): m[2] for m in re.finditer(rb"(\d+)\s+\d+\s+obj\b(.*?)\bendobj", data, re.S)}
    for body in list(found.values()):        # objects that are packed in streams
        if b"/ObjStm" in body:
            packed, first = stream_of(body), re.search(rb"/First\s+(\d+)", body)
            if not first:
                continue
            start = int(first[1])
            table = [int(n) for n in packed[:start].split() if n.isdigit()]
            places = list(zip(table[::2], table[1::2]))
            for i, (number, at) in enumerate(places):
                end = places[i + 1][1] if i + 1 < len(places) else len(packed) - start
                found[number] = packed[start + at:start + end]
    return found


def with_standard_library(data):
    if not data.startswith(b"%PDF"):
        raise ValueError("this is no PDF")
    objects = objects_of(data)
    pages = [body for _, body in sorted(objects.items()) if re.search(rb"/Type\s*/Page\b", body)]

    def about(key):
        for body in objects.values():
            found = re.search(rb"/" + key + rb"\s*" + STRING, body)
            if found and b"stream" not in body:
                return unescape(found[1])
        return None

    def page_text(page):
        whole = re.search(rb"/Contents\s*(\[[^\]]*\]|\d+\s+\d+\s+R)", page)
        numbers = re.findall(rb"(\d+)\s+\d+\s+R", whole[1]) if whole else []
        return "\n".join(text_of(stream_of(objects.get(int(n), b""))) for n in numbers)

    return len(pages), about(b"Title"), about(b"Author"), about(b"Subject"), [page_text(p) for p in pages[:PREVIEW_PAGES]]


def extract(inputs):
    data = bytes_of(inputs)
    try:
        import PyPDF2
    except ImportError:
        PyPDF2 = None
    count, title, author, subject, pages = (with_package(PyPDF2, data) if PyPDF2
                                            else with_standard_library(data))
    return {"pageCount": count, "title": title, "author": author, "subject": subject, "preview": "\n\n".join(pages)}


try:
    result = {"success": True, "data": extract(inputs)}
except (KeyError, OSError, ValueError) as why:
    result = {"success": False, "error": f"{type(why).__name__}: {why}"}
return result
