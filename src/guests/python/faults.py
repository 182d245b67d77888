# SPDX-License-Identifier: Apache-2.0
"""Turns an exception into the error that PROTOCOL.md describes.

The stack shows the user's frames and those of libraries, never the guest's, and paths are cut to
what the user would write in an import. The line is the innermost one in the user's own code.

User code owns the exception object: its __str__ may raise, its attributes may lie. Nothing here
trusts them, and nothing here raises.
"""

import errno
import linecache
import os
import sys
import traceback

TEXT_MAX = 16 * 1024
FRAMES_MAX = 500  # of a deep recursion, the innermost
_REFUSALS = (errno.EPERM, errno.EACCES, errno.EROFS)
_OWN_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep


class ImportRefused(ImportError):
    """allowed_imports does not name this module."""


def remember_source(filename, source):
    """So that stacks, inspect.getsource() and the debugger find the user's lines."""
    lines = source.splitlines(keepends=True)
    linecache.cache[filename] = (len(source), None, lines, filename)


def forget_source(filename):
    linecache.cache.pop(filename, None)


def describe_syntax(exc):
    """An error of compiling: it has a place in the source but no stack."""
    error = {"type": "SyntaxError", "name": type(exc).__name__, "message": cut(text_of(exc))}
    if isinstance(exc, ImportRefused):
        error = {"type": "PermissionError", "name": "ImportError", "message": cut(text_of(exc)),
                 "module": exc.name, "line": exc.lineno, "column": exc.column}
    elif isinstance(exc, SyntaxError):
        error["message"] = cut(str(exc.msg))
        if exc.lineno:
            error["line"] = exc.lineno
        if exc.offset and exc.offset > 0:
            error["column"] = exc.offset
        error["stack"] = cut("".join(traceback.format_exception_only(type(exc), exc)))
    return error


def describe(exc, filenames):
    """An error of running. `filenames` are the user's scripts, this run's first."""
    error = {"type": _type_of(exc), "name": type(exc).__name__, "message": cut(text_of(exc))}
    if isinstance(exc, ImportRefused):
        error["name"], error["module"] = "ImportError", exc.name
    if isinstance(exc, MemoryError) and not error["message"]:
        error["message"] = "there is not enough memory for this"
    try:
        error.update(_place(exc, filenames))
        error.update(_system_reason(exc))
        error["stack"] = cut(_stack_of(exc))
    except BaseException:
        pass  # a hostile exception; its type and message will do
    return error


def _type_of(exc):
    if isinstance(exc, MemoryError):
        return "MemoryError"
    if isinstance(exc, ImportRefused):
        return "PermissionError"
    try:
        refused = isinstance(exc, OSError) and exc.errno in _REFUSALS
    except BaseException:
        refused = False
    return "PermissionError" if refused or isinstance(exc, PermissionError) else "RuntimeError"


def text_of(exc):
    try:
        return str(exc)
    except BaseException:
        return "<%s whose text cannot be had>" % type(exc).__name__


def cut(text):
    if len(text) <= TEXT_MAX:
        return text
    half = TEXT_MAX // 2
    return "%s\n... %d characters left out ...\n%s" % (text[:half], len(text) - 2 * half,
                                                       text[-half:])


def _system_reason(exc):
    reason = {}
    if isinstance(exc, OSError) and type(exc.errno) is int:
        reason["errno"] = exc.errno
        if isinstance(exc.filename, (str, bytes)):
            reason["path"] = cut(os.fsdecode(exc.filename))
    return reason


def _place(exc, filenames):
    """The innermost frame in this run's code, or else in an earlier run's."""
    found = {}
    tb = exc.__traceback__
    while tb:
        found[tb.tb_frame.f_code.co_filename] = tb
        tb = tb.tb_next
    for filename in filenames:
        if filename in found:
            return _position(found[filename], filename)
    return {}


def _position(tb, filename):
    place = {"line": tb.tb_lineno}
    positions = getattr(tb.tb_frame.f_code, "co_positions", None)
    if positions and tb.tb_lasti >= 0:
        line, _, column, _ = list(positions())[tb.tb_lasti // 2]
        if line == tb.tb_lineno and column is not None:
            source = linecache.getline(filename, line).encode("utf-8", "replace")
            if source:  # of a compiled prelude there is none
                place["column"] = len(source[:column].decode("utf-8", "ignore")) + 1
    return place


def _depth(tb):
    depth = 0
    while tb:
        depth, tb = depth + 1, tb.tb_next
    return depth


def _stack_of(exc):
    limit = None if _depth(exc.__traceback__) <= FRAMES_MAX else -FRAMES_MAX
    whole = traceback.TracebackException(type(exc), exc, exc.__traceback__, limit=limit,
                                         compact=True)
    _clean(whole, set())
    return "".join(whole.format())


def _clean(one, seen):
    if one is None or id(one) in seen:
        return
    seen.add(id(one))
    kept = [frame for frame in one.stack if not frame.filename.startswith(_OWN_FOLDER)]
    for frame in kept:
        frame.filename = shorten(frame.filename)
    one.stack[:] = kept
    for inner in (one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or ())):
        _clean(inner, seen)


def shorten(path):
    """"/usr/lib/python3.11/json/__init__.py" is "json/__init__.py" to its user."""
    folders = [os.getcwd(), *(p for p in sys.path if isinstance(p, str))]
    for folder in sorted(folders, key=len, reverse=True):
        if folder and path.startswith(folder.rstrip("/") + "/"):
            return path[len(folder.rstrip("/")) + 1:]
    return os.path.basename(path) if path.startswith("/") else path
