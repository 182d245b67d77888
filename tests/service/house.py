# SPDX-License-Identifier: Apache-2.0
"""Drives the real server, over its real socket, with nothing but Python's own HTTP client.

    server.post("/v1/executions", {"language": "python", "code": "return 6 * 7"}).json["result"]
    with serve("--database-url", url) as other: ...       a server of one's own
    @pytest.mark.parametrize over `databases`             the same on SQLite and PostgreSQL

A server starts in about half a second, so most tests of a file share one.
"""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.parse

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RETORT = os.environ.get("RETORT", str(ROOT / "build/retort"))
SERVICES = ROOT / "tests/services"
START_SECONDS = 60


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.body[:500]!r}>"


class Server:
    def __init__(self, process, url, data_dir, log):
        self.process, self.url, self.data_dir, self.log = process, url, data_dir, log
        self.key = None
        parts = urllib.parse.urlsplit(url)
        self.host, self.port = parts.hostname, parts.port

    def request(self, method, path, body=None, headers=None, key=None, timeout=60):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        sent = {**({"Authorization": f"Bearer {key or self.key}"} if key or self.key else {}),
                **(headers or {})}
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return Reply(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, body=None, **options):
        return self.request("POST", path, {} if body is None else body, **options)

    def put(self, path, body, **options):
        return self.request("PUT", path, body, **options)

    def delete(self, path, **options):
        return self.request("DELETE", path, **options)

    def run(self, code, language="python", **members):
        reply = self.post("/v1/executions", {"language": language, "code": code, **members})
        assert reply.status == 200, reply
        return reply.json

    def events(self, method, path, body=None, timeout=60):
        """The server-sent events of an answer, as (event, data) pairs, as they come."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        headers = {"Accept": "text/event-stream"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        assert answer.getheader("Content-Type").startswith("text/event-stream")
        event = data = None
        for raw in answer:
            line = raw.decode().rstrip("\r\n")
            if line.startswith("event:"):
                event = line[6:].strip()
            elif line.startswith("data:"):
                data = line[5:].strip()
            elif line == "" and event:
                yield event, json.loads(data)
                event = data = None
        connection.close()

    def kill(self):
        """As a crash would: nothing is tidied."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, timeout=60):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def log_text(self):
        return pathlib.Path(self.log).read_text(errors="replace")


def start(*args, data_dir, env=None, log=None):
    log = log or os.path.join(data_dir, "server.log")
    with open(log, "ab") as errors:
        process = subprocess.Popen(
            [RETORT, "serve", "--port", "0", "--data-dir", data_dir, *map(str, args)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, cwd=data_dir,
            env={**os.environ, **(env or {})})
    timer = threading.Timer(START_SECONDS, process.kill)
    timer.start()
    url = None
    for raw in process.stdout:
        found = re.search(rb"http://\S+", raw)
        if found:
            url = found.group().decode()
            break
    timer.cancel()
    if not url:
        process.wait()
        pytest.fail(f"retort serve ended with {process.returncode}: "
                    f"{pathlib.Path(log).read_text(errors='replace')[-2000:]}")
    threading.Thread(target=process.stdout.read, daemon=True).start()
    return Server(process, url, data_dir, log)


@contextlib.contextmanager
def serve(*args, data_dir=None, env=None):
    """A server in a directory of its own, gone with all it left at the end."""
    own = data_dir is None
    data_dir = data_dir or tempfile.mkdtemp(prefix="retort-service-")
    server = start(*args, data_dir=data_dir, env=env)
    try:
        yield server
    finally:
        try:
            server.stop()
        except subprocess.TimeoutExpired:
            server.kill()
            pytest.fail("the server did not stop when it was told to")
        finally:
            if own:
                shutil.rmtree(data_dir, ignore_errors=True)


@contextlib.contextmanager
def service(name, variable):
    given = os.environ.get(variable)
    if given:
        yield given
        return
    folder = tempfile.mkdtemp(prefix="retort-svc-", dir="/tmp")
    os.chmod(folder, 0o711)
    place = os.path.join(folder, name)
    url = subprocess.run([SERVICES / name, "start", place, str(os.getpid())], check=True,
                         capture_output=True, text=True).stdout.strip()
    try:
        yield url
    finally:
        subprocess.run([SERVICES / name, "stop", place], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def cli(server, *args):
    return subprocess.run([RETORT, *args, "--data-dir", server.data_dir], capture_output=True,
                          text=True, timeout=60)
