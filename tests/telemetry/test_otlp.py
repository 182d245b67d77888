# SPDX-License-Identifier: Apache-2.0
"""What is sent is OTLP: as a real receiver decodes it, and as the protocol's own files judge it."""

import json

import oracle
import pytest
from receivers import answer


def attributes_of(span):
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in span.attributes}


@pytest.fixture(scope="module")
def request_class(tmp_path_factory):
    return oracle.request_class(tmp_path_factory.mktemp("protos"))


# ---- the receiver of npm ----

def test_a_real_receiver_decodes_the_spans(drive, receiver):
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_EXPORTER_OTLP_HEADERS": "x-who=a%20b",
           "OTEL_SERVICE_NAME": "kitchen", "OTEL_RESOURCE_ATTRIBUTES": "host.name=x"}
    driven = drive(env=env, spans=1)

    request = receiver.next("request")
    assert (request["method"], request["path"]) == ("POST", "/v1/traces")
    assert request["headers"]["content-type"] == "application/json"
    assert request["headers"]["x-who"] == "a b"
    assert request["headers"]["user-agent"].startswith("retort/")

    [resource] = receiver.next("trace")["resourceSpans"]
    assert resource["resource"]["attributes"]["service.name"] == "kitchen"
    assert resource["resource"]["attributes"]["host.name"] == "x"
    [scope] = resource["scopeSpans"]
    child, root = scope["spans"]
    assert scope["scope"]["name"] == "retort"
    assert (root["name"], root["kind"]) == ("tools/call run_code", "SPAN_KIND_SERVER")
    assert root["attributes"] == {"mcp.method.name": "tools/call", "text": '"café"\n\ufffd'}
    assert root["status"]["code"] == "STATUS_CODE_UNSET"
    assert (child["name"], child["kind"]) == ("execute_tool run_code", "SPAN_KIND_INTERNAL")
    assert child["attributes"]["code.success"] is False
    assert child["attributes"]["code.cpu_seconds"] == 0.125
    assert child["status"] == {"code": "STATUS_CODE_ERROR", "message": "tool_error"}
    assert child["traceId"] == root["traceId"] and child["parentSpanId"] == root["spanId"]
    assert "trace" in receiver.next("summary")
    assert driven.warnings == []


# ---- the protocol's own files ----

def test_the_protocol_itself_accepts_the_request(drive, stand_in, request_class):
    server = stand_in(answer(200))
    drive(url=server.url, spans=1)
    [request] = server.requests
    [resource] = oracle.parse(request.body, request_class).resource_spans
    child, root = resource.scope_spans[0].spans
    assert (root.kind, child.kind) == (2, 1)
    assert root.trace_id == child.trace_id and child.parent_span_id == root.span_id
    assert root.parent_span_id == b"" and root.flags == child.flags == 1
    assert attributes_of(child) == {"code.exit_code": -9007199254740993, "code.cpu_seconds": 0.125,
                                    "code.success": False}
    assert attributes_of(root)["text"] == '"café"\n\ufffd'
    assert (child.status.code, child.status.message, root.status.code) == (2, "tool_error", 0)
    began = root.start_time_unix_nano
    assert 0 < began <= child.start_time_unix_nano <= child.end_time_unix_nano <= root.end_time_unix_nano


def test_a_file_has_the_same_requests_a_line_each(drive, stand_in, request_class, tmp_path):
    server = stand_in(answer(200))
    drive(url=server.url, file=tmp_path / "spans", spans=2)
    lines = (tmp_path / "spans").read_bytes().splitlines()
    assert lines == [request.body.strip() for request in server.requests]
    for line in lines:
        assert len(oracle.parse(line, request_class).resource_spans[0].scope_spans[0].spans) == 4


@pytest.mark.parametrize("spoil", [
    lambda span: span.update(unheardOf=1),
    lambda span: span.update(traceId="xyz"),
    lambda span: span.update(spanId="0" * 16),
    lambda span: span.update(traceId=span["traceId"].upper().replace("1", "A")),
    lambda span: span.update(kind="SPAN_KIND_SERVER"),
    lambda span: span.update(startTimeUnixNano=1),
    lambda span: span.update(start_time_unix_nano=span.pop("startTimeUnixNano")),
    lambda span: span.update(name=7),
])
def test_the_judge_is_strict(drive, tmp_path, request_class, spoil):
    drive(file=tmp_path / "spans", spans=1)
    doc = json.loads((tmp_path / "spans").read_text())
    oracle.parse(json.dumps(doc), request_class)
    spoil(doc["resourceSpans"][0]["scopeSpans"][0]["spans"][0])
    with pytest.raises((AssertionError, oracle.json_format.ParseError)):
        oracle.parse(json.dumps(doc), request_class)


def test_many_spans_go_in_batches(drive, stand_in, request_class):
    server = stand_in(answer(200))
    drive(url=server.url, spans=600, delay=60000)
    sizes = [len(oracle.parse(r.body, request_class).resource_spans[0].scope_spans[0].spans)
             for r in server.requests]
    assert sum(sizes) == 1200 and max(sizes) == 512
