# SPDX-License-Identifier: Apache-2.0
"""Turns a Python value into JSON text.

What json.dumps() takes goes through it: str, int (exact at any size), float, bool, None, list,
tuple, dict. Beyond that:

    NaN, Infinity            null
    Decimal                  a number with all its digits; NaN is null
    Fraction, complex, UUID  their text
    datetime, date, time     ISO 8601 text
    timedelta                seconds
    set, frozenset           an array, sorted when its members can be
    bytes, bytearray         {"base64": "..."}
    Enum                     its value
    dataclass, mapping       an object; a key that is no text becomes its text
    range, deque, dict views an array
    path                     its text
    numpy                    number or nested arrays; dates as ISO 8601
    pandas, polars           DataFrame: an array of records, with its index if it has one of its own;
                             Series: an array, or an object by its index; NA is null
    pydantic                 what model_dump() says
    anything else            its repr()

A value that contains itself has no JSON: that is an error, as is one nested too deeply.
"""

import base64
import collections
import collections.abc
import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import os
import uuid

_quote = json.encoder.encode_basestring_ascii
_TEXTS = (fractions.Fraction, complex, uuid.UUID)
_MOMENTS = (datetime.datetime, datetime.date, datetime.time)
_ARRAYS = (list, tuple, range, collections.deque, collections.abc.KeysView,
           collections.abc.ValuesView, collections.abc.ItemsView)


def _refuse(value):
    raise TypeError(value)


# The encoder inside json.dumps(), made once; what contains itself ends in a RecursionError.
_encode_plain = json.encoder.c_make_encoder(None, _refuse, _quote, None, ": ", ", ", False, False,
                                            False)


class NoAnswer(Exception):
    """The value cannot be an answer; the text says why, to the user."""


def to_json(value):
    try:
        return "".join(_encode_plain(value, 0))
    except (TypeError, ValueError, RecursionError):
        pass  # not plain JSON, or contains itself: the slow way tells which
    try:
        return _encode(value, set())
    except RecursionError:
        raise NoAnswer("the answer is nested too deeply to be JSON") from None


def _encode(value, outer):
    if value is None or value is True or value is False:
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, enum.Enum):
        return _encode(value.value, outer)
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return float.__repr__(value) if value - value == 0 else "null"
    if isinstance(value, decimal.Decimal):
        return str(value) if value.is_finite() else "null"
    return _encode_object(value, outer)


def _encode_object(value, outer):
    if id(value) in outer:
        raise NoAnswer("the answer contains itself (circular reference), so it cannot be JSON")
    outer.add(id(value))
    try:
        plain = _simplify(value)
        if isinstance(plain, dict):
            return "{" + ", ".join(_quote(_key(k)) + ": " + _encode(v, outer)
                                   for k, v in plain.items()) + "}"
        if isinstance(plain, (list, tuple)):
            return "[" + ", ".join(_encode(v, outer) for v in plain) + "]"
        return _encode(plain, outer)
    finally:
        outer.discard(id(value))


def _key(key):
    if isinstance(key, enum.Enum):
        key = key.value
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, (bool, int, float)):
        return json.dumps(key)
    if isinstance(key, _MOMENTS):
        return key.isoformat()
    return _text(key)


def _simplify(value):
    """One step towards JSON: a dict, a list, or something _encode() knows."""
    if isinstance(value, (dict, list, tuple)):
        return value
    if hasattr(type(value), "_retort_value"):
        return value._retort_value()  # of a call that nobody has awaited
    if isinstance(value, _MOMENTS):
        return value.isoformat() if value == value else None  # pandas.NaT is not itself
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, (set, frozenset)):
        return _in_order(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, _TEXTS):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, collections.abc.Mapping):
        return dict(value)
    if isinstance(value, _ARRAYS):
        return list(value)
    return _simplify_foreign(value)


def _simplify_foreign(value):
    """Types of libraries that need not be installed, known by where they come from."""
    library = type(value).__module__.partition(".")[0]
    if library == "numpy" and hasattr(value, "tolist"):
        kind = getattr(getattr(value, "dtype", None), "kind", "")
        return value.astype(str).tolist() if kind in "mM" and kind else value.tolist()
    if library == "pandas":
        if type(value).__name__ in ("NAType", "NaTType"):
            return None
        return _simplify_pandas(value)
    if library == "polars" and hasattr(value, "to_dicts"):
        return value.to_dicts()
    if library == "polars" and hasattr(value, "to_list"):
        return value.to_list()
    if hasattr(type(value), "model_dump"):
        return value.model_dump()
    return _text(value)


def _simplify_pandas(value):
    """An index that somebody made is part of the answer: a sum without its group says nothing."""
    index = getattr(value, "index", None)
    is_plain = index is None or type(index).__name__ == "RangeIndex"
    if hasattr(value, "columns"):
        return (value if is_plain else value.reset_index()).to_dict("records")
    if is_plain or not hasattr(value, "to_frame"):
        return value.tolist() if hasattr(value, "tolist") else _text(value)
    if index.nlevels == 1 and index.is_unique:
        return {_key(key): item for key, item in zip(index.tolist(), value.tolist())}
    return value.reset_index().to_dict("records")


def _in_order(members):
    try:
        return sorted(members)
    except Exception:
        return list(members)


def _text(value):
    """repr(), also of an object whose repr() is broken."""
    try:
        return str(repr(value))
    except BaseException:
        return "<%s object>" % type(value).__name__
