# SPDX-License-Identifier: Apache-2.0
"""Clients of MCP as small as they can be, to see the server as it is."""

import http.client
import itertools
import json
import queue
import shutil
import subprocess
import tempfile
import threading

from house import RETORT

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LEVEL = "io.modelcontextprotocol/logLevel"


class Failed(Exception):
    def __init__(self, error, status=None):
        super().__init__(error["message"])
        self.code, self.message, self.data = error["code"], error["message"], error.get("data")
        self.status = status


def events_of(answer):
    """The messages of an event stream, as they come, with the ids of their events."""
    event_id = None
    for raw in answer:
        line = raw.decode().rstrip("\r\n")
        if line.startswith("id:"):
            event_id = line[3:].strip()
        elif line.startswith("data:") and line[5:].strip():
            yield event_id, json.loads(line[5:])


class Http:
    """One endpoint; what a request says beside its body is up to who inherits."""

    def __init__(self, server, key=None):
        self.server, self.key, self.ids = server, key, itertools.count(1)
        self.notifications = []

    def headers(self, message):
        return {"Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
                **({"Authorization": f"Bearer {self.key}"} if self.key else {})}

    def open(self, message, headers=None, timeout=60):
        """The connection and the answer, not read yet."""
        connection = http.client.HTTPConnection(self.server.host, self.server.port, timeout=timeout)
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        sent = {**self.headers(message), **(headers or {})}
        connection.request("POST", "/mcp", body, {k: v for k, v in sent.items() if v is not None})
        return connection, connection.getresponse()

    def send(self, message, headers=None):
        """Status, headers and the messages of the answer."""
        connection, answer = self.open(message, headers)
        try:
            if answer.getheader("Content-Type", "").startswith("text/event-stream"):
                messages = [message for _, message in events_of(answer)]
            else:
                body = answer.read()
                messages = [json.loads(body)] if body else []
            return answer.status, dict(answer.getheaders()), messages
        finally:
            connection.close()

    def message(self, method, params=None, meta=None):
        return {"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": params or {}}

    def request(self, method, params=None, meta=None, headers=None):
        status, _, messages = self.send(self.message(method, params, meta), headers)
        *self.notifications, last = messages
        if "error" in last:
            raise Failed(last["error"], status)
        return last["result"]

    def call(self, tool, /, _meta=None, **arguments):
        return self.request("tools/call", {"name": tool, "arguments": arguments}, _meta)


class Modern(Http):
    def message(self, method, params=None, meta=None):
        return {"jsonrpc": "2.0", "id": next(self.ids), "method": method,
                "params": {**(params or {}),
                           "_meta": {VERSION: MODERN, CAPABILITIES: {}, **(meta or {})}}}

    def headers(self, message):
        said = super().headers(message)
        if isinstance(message, dict):
            params = message.get("params", {})
            said["MCP-Protocol-Version"] = MODERN
            said["Mcp-Method"] = message.get("method")
            said["Mcp-Name"] = params.get("name") or params.get("uri")
        return {k: v for k, v in said.items() if v is not None}


class Session(Http):
    def __init__(self, server, version=LEGACY, key=None, capabilities=None):
        super().__init__(server, key)
        self.id = self.version = None
        _, headers, (answer,) = self.send(self.message("initialize", {
            "protocolVersion": version, "capabilities": capabilities or {},
            "clientInfo": {"name": "tests", "version": "1"}}))
        self.introduction = answer["result"]
        self.version, self.id = self.introduction["protocolVersion"], headers["Mcp-Session-Id"]
        assert self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})[0] == 202

    def headers(self, message):
        return {**super().headers(message),
                **({"Mcp-Session-Id": self.id, "MCP-Protocol-Version": self.version}
                   if self.id else {})}

    def message(self, method, params=None, meta=None):
        return {"jsonrpc": "2.0", "id": next(self.ids), "method": method,
                "params": {**(params or {}), **({"_meta": meta} if meta else {})}}


class Stdio:
    """`retort mcp` in a directory of its own, gone with it."""

    def __init__(self, *args, data_dir=None):
        self.own = data_dir is None
        self.data_dir = data_dir or tempfile.mkdtemp(prefix="retort-mcp-")
        self.process = subprocess.Popen([RETORT, "mcp", "--data-dir", self.data_dir, *args],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, cwd=self.data_dir)
        self.ids, self.lines, self.others = itertools.count(1), queue.Queue(), []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def send(self, message):
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(body + b"\n")
        self.process.stdin.flush()

    def next(self, within=60):
        line = self.lines.get(timeout=within)
        return json.loads(line) if line else None

    def start(self, method, params=None):
        number = next(self.ids)
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})
        return number

    def answer(self, number):
        """The answer to a request; what comes before it is put aside."""
        while True:
            message = self.next()
            assert message is not None, "retort mcp has ended"
            if message.get("id") == number and "method" not in message:
                return message
            self.others.append(message)

    def request(self, method, params=None):
        message = self.answer(self.start(method, params))
        if "error" in message:
            raise Failed(message["error"])
        return message["result"]

    def initialize(self, version=LEGACY):
        said = self.request("initialize", {"protocolVersion": version, "capabilities": {},
                                           "clientInfo": {"name": "tests", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return said

    def call(self, tool, /, **arguments):
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def close(self):
        if not self.process.stdin.closed:
            self.process.stdin.close()
        return self.process.wait(60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        if self.own:
            shutil.rmtree(self.data_dir, ignore_errors=True)
