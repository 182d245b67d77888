# SPDX-License-Identifier: Apache-2.0
# Data Validator: data against a JSON Schema. jsonschema, where it is installed, judges; otherwise the
# commonest keywords are judged here, and a schema that uses others is refused rather than passed.
import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"type", "enum", "const", "properties", "required", "additionalProperties", "items", "minItems",
         "maxItems", "minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum",
         "exclusiveMaximum", "title", "description", "default", "examples", "$schema", "$id", "format"}


class Invalid(Exception):
    def __init__(self, message, path):
        super().__init__(message)
        self.path = path


def is_a(data, kind):
    if kind in ("integer", "number"):
        is_number = isinstance(data, (int, float)) and not isinstance(data, bool)
        return is_number and (kind == "number" or float(data).is_integer())
    return isinstance(data, TYPES[kind])


def check_number(data, schema, fail):
    for key, is_bad in (("minimum", lambda a, b: a < b), ("maximum", lambda a, b: a > b),
                        ("exclusiveMinimum", lambda a, b: a <= b), ("exclusiveMaximum", lambda a, b: a >= b)):
        if key in schema and is_bad(data, schema[key]):
            fail(f"{data!r} breaks {key} {schema[key]!r}")


def check_object(data, schema, path, fail):
    known = schema.get("properties", {})
    for key in schema.get("required", []):
        if key not in data:
            fail(f"{key!r} is a required property")
    for key, value in data.items():
        if key in known:
            check(value, known[key], path + [key])
        elif schema.get("additionalProperties") is False:
            fail(f"{key!r} is not allowed here")
        elif isinstance(schema.get("additionalProperties"), dict):
            check(value, schema["additionalProperties"], path + [key])


def check(data, schema, path):
    def fail(message):
        raise Invalid(message, path)

    if schema is True or schema is False:
        return None if schema else fail("nothing is allowed here")
    if set(schema) - KNOWN:
        raise ValueError("the package jsonschema is not installed, and without it "
                         f"{sorted(set(schema) - KNOWN)} cannot be judged")
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(is_a(data, kind) for kind in kinds):
        fail(f"{data!r} is not of type {' or '.join(kinds)}")
    if "enum" in schema and data not in schema["enum"]:
        fail(f"{data!r} is not one of {schema['enum']!r}")
    if "const" in schema and data != schema["const"]:
        fail(f"{data!r} is not {schema['const']!r}")
    if is_a(data, "number"):
        check_number(data, schema, fail)
    if isinstance(data, (str, list)):
        low, high = ("minLength", "maxLength") if isinstance(data, str) else ("minItems", "maxItems")
        if len(data) < schema.get(low, 0) or len(data) > schema.get(high, len(data)):
            fail(f"{data!r} has the wrong length")
    if isinstance(data, str) and "pattern" in schema and not re.search(schema["pattern"], data):
        fail(f"{data!r} does not match {schema['pattern']!r}")
    if isinstance(data, list) and "items" in schema:
        for i, item in enumerate(data):
            check(item, schema["items"], path + [i])
    if isinstance(data, dict):
        check_object(data, schema, path, fail)


def validate(data, schema):
    try:
        import jsonschema
    except ImportError:
        jsonschema = None
    if jsonschema is None:
        return check(data, schema, [])
    try:
        jsonschema.validate(data, schema)
    except jsonschema.ValidationError as why:
        raise Invalid(why.message, list(why.absolute_path))


try:
    validate(inputs["data"], inputs["schema"])
    result = {"success": True, "valid": True}
except Invalid as why:
    result = {"success": True, "valid": False, "error": str(why), "path": why.path}
except (KeyError, TypeError, ValueError) as why:
    result = {"success": False, "error": f"{type(why).__name__}: {why}"}
return result
