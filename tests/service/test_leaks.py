# SPDX-License-Identifier: Apache-2.0
"""Plants people in all that goes through a server with every outside service attached, then looks for them
where nobody should be: the store, the cache, the data directory, the log, a core, and what was sent away."""

import http.server
import json
import os
import pathlib
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
import urllib.parse

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "code_execution"))
from story import configuration  # noqa: E402, servers with tools

WITHIN = 60


class Receiver(http.server.ThreadingHTTPServer):
    """Takes whatever is posted, as OTLP and PostHog do."""
    daemon_threads = True

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.server.bodies.append(self.path.encode() + b"\n" + str(self.headers).encode() +
                                      self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *args):
            pass

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.bodies = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def wait_for(self, text):
        deadline = time.monotonic() + WITHIN
        while not any(text.encode() in body for body in self.bodies):
            assert time.monotonic() < deadline, f"nobody sent {text}"
            time.sleep(0.02)


@pytest.fixture
def receiver():
    one = Receiver()
    yield one
    one.shutdown()
    one.server_close()


class Marker:
    """People with one name that nothing else has: mail("input") is a different one each time."""

    def __init__(self):
        self.name = "zq" + secrets.token_hex(8)

    def mail(self, place):
        return f"{self.name}.{place}@example.org"

    def in_code(self, place):
        """An expression that makes the mail, so that the code's own text does not hold it."""
        return f"'{self.name[:9]}' + '{self.name[9:]}.{place}' + '@' + 'example.org'"


def plant(server, marker):
    mail, made = marker.mail, marker.in_code
    tokens = {"mode": "tokens", "detokenize": True}
    answer = server.run("return inputs", input={"to": mail("input"), mail("key"): 1}, privacy=tokens)
    assert answer["result"]["to"] == mail("input")  # it does come back to who may have it
    server.run("import sys; return sys.stdin.read()", stdin=mail("stdin"), privacy="tokens")
    server.run(f"who = {made('output')}\nprint(who)\nimport sys\nprint(who, file=sys.stderr)\nreturn [who]",
               privacy="redact", cache="use")
    server.run(f"raise type({made('class')}, (Exception,), {{}})({made('error')})", privacy="tokens")
    server.run(f"import os\nos.makedirs('out')\nopen('out/' + {made('name')}, 'w').write({made('artifact')})",
               privacy="tokens")
    big = server.run("return [inputs['to']] * 20000", input={"to": mail("big")}, privacy=tokens)
    assert big["handles"]
    server.post("/v1/executions", {"code": "return inputs", "input": {"to": mail("once")}, "privacy": tokens,
                                   "idempotency_key": marker.name[:6]})
    server.run("return inputs", input={"to": mail("plain")}, cache="use")
    server.run("return 1", input={"to": mail("schema")}, privacy="tokens", input_schema={
        "properties": {"to": {"enum": ["nobody"]}}})
    server.post("/api/agent/execute-code", {"code": "print(inputs)", "inputs": {"to": mail("agent")}})
    session = server.post("/v1/sessions", {"language": "python"}).json["id"]
    server.run("kept = inputs['to']", input={"to": mail("session")}, privacy="tokens", session_id=session)
    back = server.run("return kept", privacy=tokens, session_id=session)
    assert back["result"] == mail("session")  # tokens of an earlier run of the session are known
    server.post("/v1/privacy/scan", {"text": mail("scan")})
    server.post("/v1/privacy/mask", {"value": [mail("mask")], "mode": "tokens"})
    server.get(f"/v1/executions/{mail('path')}?q={mail('query')}", headers={"User-Agent": mail("agent")})
    server.post("/v1/executions", {mail("member"): 1})
    called = server.run(f"""
seen = github.list_commits(limit=1)[0]["author"]
try:
    github.get_commit(sha={made('argument')})
except Exception as why:
    return [seen, str(why)]""", privacy="tokens")
    assert called["success"] and called["result"][0] == "[EMAIL_1]" and "[EMAIL_2]" in called["result"][1], called
    server.run("return 'last'", user_id=marker.mail("user"))


def find_in_files(folder, needle):
    return [str(path) for path in pathlib.Path(folder).rglob("*")
            if path.is_file() and needle in path.read_bytes()]


def dump_redis(url):
    parts = urllib.parse.urlsplit(url)
    where = ["-s", parts.path] if parts.scheme == "unix" else ["-u", url]
    keys = subprocess.run(["redis-cli", *where, "--raw", "KEYS", "*"], capture_output=True, check=True).stdout
    values = [subprocess.run(["redis-cli", *where, "--raw", "GET", key], capture_output=True).stdout
              for key in keys.split(b"\n") if key]
    return keys + b"\n".join(values)


def dump_postgres(arguments):
    if not arguments:
        return b""
    url = arguments[1]
    schema = re.search(r"search_path%3D(\w+)", url)[1]
    return subprocess.run(["pg_dump", "--schema", schema, re.sub(r"[?&]options=[^&]*", "", url)],
                          capture_output=True, check=True).stdout


def expect_no_core(server):
    """A daemon that breaks leaves no image of its memory, whatever the limits of who started it."""
    folder = pathlib.Path("/proc", str(server.process.pid))
    assert re.search(r"Max core file size\s+0\s+0\s", (folder / "limits").read_text())
    user = int(re.search(r"Uid:\s+(\d+)", (folder / "status").read_text())[1])
    assert (folder / "mem").stat().st_uid == 0 or os.getuid() == user == 0
    if os.getuid() == 0 or user == os.getuid():  # the vault of the session: not dumped, not inherited
        try:
            maps = (folder / "smaps").read_text()
        except PermissionError:
            maps = "VmFlags: dd dc"
        assert any({"dd", "dc"} <= set(line.split()) for line in maps.splitlines() if line.startswith("VmFlags"))
    server.process.send_signal(signal.SIGABRT)
    assert server.process.wait(WITHIN) == -signal.SIGABRT


def test_nobody_is_found_where_nobody_should_be(serving, database, redis, receiver, tmp_path):
    marker = Marker()
    needle = marker.name.encode()
    (tmp_path / "mcp.json").write_text(json.dumps(configuration(tmp_path, ["github"])))
    (tmp_path / "commits.json").write_text(json.dumps([{"sha": "1", "author": marker.mail("tool")}]))
    with serving(*database, "--redis.url", redis, "--log.level", "debug", "--mcp-config", tmp_path / "mcp.json",
                 env={"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_BSP_SCHEDULE_DELAY": "50",
                      "RETORT_TELEMETRY_POSTHOG_URL": receiver.url, "RETORT_TELEMETRY_POSTHOG_KEY": "phc_x",
                      "RETORT_TELEMETRY_SPAN_FILE": "spans.jsonl"}) as server:
        plant(server, marker)
        receiver.wait_for("code_executed")
        receiver.wait_for('"distinct_id":"[EMAIL_REDACTED]"')  # the last run's event: all others came before
        receiver.wait_for("resourceSpans")
        assert "[EMAIL_REDACTED]" in server.log_text()
        assert needle not in server.log_text().encode()
        assert needle not in dump_redis(redis)
        expect_no_core(server)
        spans = pathlib.Path(server.data_dir, "spans.jsonl")
        assert spans.exists() and len(json.loads(spans.read_text().splitlines()[0])) > 0
        # Whose runs they are is on record, by the caller's own word, and nowhere else.
        stored = [*find_in_files(server.data_dir, needle), dump_postgres(database)]
        owner = marker.mail("user").encode()
        for place in stored:
            text = place if isinstance(place, bytes) else pathlib.Path(place).read_bytes()
            assert needle not in text.replace(owner, b""), place if isinstance(place, str) else text[:2000]
    assert not [body for body in receiver.bodies if needle in body]
    asked = (tmp_path / "calls.jsonl").read_bytes()
    assert b"[EMAIL_2]" in asked and needle not in asked  # a tool that was granted no values
