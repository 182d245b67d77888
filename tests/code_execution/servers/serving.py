# SPDX-License-Identifier: Apache-2.0
"""A small MCP server over stdio, for servers of the tests: real processes, real protocol.

    server = Server("github")

    @server.tool("list_commits", "Lists commits.", {"limit": {"type": "integer"}}, read_only=True)
    def list_commits(limit=30): ...

    server.serve()

Each call is appended to the file $STORY_LOG as a line of JSON, so that tests can count them.
"""

import json
import os
import sys
import threading
import traceback


class Server:
    def __init__(self, name):
        self.name, self.tools, self.lock = name, {}, threading.Lock()

    def tool(self, name, description, properties, required=(), read_only=False, output=None):
        def add(function):
            self.tools[name] = function, {
                "name": name, "description": description,
                "inputSchema": {"type": "object", "properties": properties,
                                "required": list(required)},
                "annotations": {"readOnlyHint": read_only, "destructiveHint": not read_only},
                **({"outputSchema": output} if output else {}),
            }
            return function
        return add

    def send(self, message):
        with self.lock:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def call(self, params):
        name, arguments = params["name"], params.get("arguments") or {}
        log = os.environ.get("STORY_LOG")
        if log:
            with self.lock, open(log, "a") as lines:
                lines.write(json.dumps({"server": self.name, "tool": name,
                                        "arguments": arguments}) + "\n")
        try:
            value = self.tools[name][0](**arguments)
        except Exception as why:  # noqa: BLE001 - whatever it is, the caller is told
            return {"content": [{"type": "text", "text": f"{type(why).__name__}: {why}"}],
                    "isError": True}
        text = {"content": [{"type": "text", "text": json.dumps(value)}]}
        return {**text, "structuredContent": value} if isinstance(value, dict) else text

    def answer(self, request):
        method, params = request["method"], request.get("params") or {}
        if method == "initialize":
            return {"protocolVersion": params.get("protocolVersion", "2025-06-18"),
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": self.name, "version": "1.0.0"}}
        if method == "ping":
            return {}
        if method == "tools/list":
            return {"tools": [schema for _, schema in self.tools.values()]}
        if method == "tools/call" and params.get("name") in self.tools:
            return self.call(params)
        return None

    def handle(self, request):
        try:
            result = self.answer(request)
        except Exception:  # noqa: BLE001
            traceback.print_exc()
            result = None
        if result is None:
            self.send({"id": request["id"], "error": {"code": -32601, "message": "not known here"}})
        else:
            self.send({"id": request["id"], "result": result})

    def serve(self):
        for line in sys.stdin:
            request = json.loads(line)
            if "id" in request and "method" in request:
                threading.Thread(target=self.handle, args=(request,), daemon=True).start()
