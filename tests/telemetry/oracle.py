# SPDX-License-Identifier: Apache-2.0
"""Judges OTLP in JSON strictly: by the protocol's own .proto files, and by what these cannot say.

protobuf's JSON reader takes ids as base64, so they are turned from hexadecimal first; and it lets
snake_case keys, names of enums and numbers for 64-bit integers pass, which OTLP forbids.
"""

import base64
import json
import pathlib
import re
import subprocess

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

PROTOS = pathlib.Path(__file__).resolve().parent / "node_modules/@elastic/mockotlpserver"
REQUEST = "opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest"
IDS = {"traceId": 32, "spanId": 16, "parentSpanId": 16}
LONGS = {"startTimeUnixNano", "endTimeUnixNano", "timeUnixNano", "intValue"}
ENUMS = {"kind", "code"}


def request_class(folder):
    described = folder / "otlp.pb"
    subprocess.run(["protoc", f"--proto_path={PROTOS}", "--include_imports",
                    f"--descriptor_set_out={described}",
                    "opentelemetry/proto/collector/trace/v1/trace_service.proto"], check=True)
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(described.read_bytes()).file:
        pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName(REQUEST))


def checked(key, value):
    """The value as protobuf wants it, once it is what OTLP wants."""
    assert re.fullmatch(r"[a-z][a-zA-Z0-9]*", key), f"{key} is not lowerCamelCase"
    if key in IDS:
        assert re.fullmatch(f"[0-9a-f]{{{IDS[key]}}}", value) and int(value, 16), f"{key}: {value}"
        return base64.b64encode(bytes.fromhex(value)).decode()
    if key in LONGS:
        assert isinstance(value, str) and re.fullmatch(r"-?\d+", value), f"{key}: {value!r}"
    if key in ENUMS:
        assert type(value) is int, f"{key}: {value!r} is not a number"
    return walked(value)


def walked(value):
    if isinstance(value, dict):
        return {k: checked(k, v) for k, v in value.items()}
    return [walked(v) for v in value] if isinstance(value, list) else value


def parse(text, cls):
    """The request as a protobuf message; what is not OTLP raises."""
    return json_format.Parse(json.dumps(walked(json.loads(text))), cls())
