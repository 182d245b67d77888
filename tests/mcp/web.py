# SPDX-License-Identifier: Apache-2.0
"""An MCP server over HTTP whose every answer is under control: a script of answers per method.

    server = Web()                                  legacy, with a session; url is server.url
    server.on["tools/call"] = lambda web, request: web.events(...)
"""

import http.server
import json
import threading


class Request:
    def __init__(self, handler, body):
        self.handler, self.headers, self.verb, self.path = handler, handler.headers, handler.command, handler.path
        self.body = body
        is_json = handler.headers.get("Content-Type", "") == "application/json"
        self.message = json.loads(body) if body and is_json else {}
        self.id, self.method = self.message.get("id"), self.message.get("method")
        self.params = self.message.get("params") or {}

    def reply(self, status, body=b"", type="application/json", **headers):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        h = self.handler
        h.send_response(status)
        h.send_header("Content-Type", type)
        for name, value in headers.items():
            h.send_header(name.replace("_", "-"), value)
        h.send_header("Content-Length", str(len(body)))
        h.end_headers()
        h.wfile.write(body)

    def result(self, result, **headers):
        self.reply(200, {"jsonrpc": "2.0", "id": self.id, "result": result}, **headers)

    def error(self, code, message, status=200):
        self.reply(status, {"jsonrpc": "2.0", "id": self.id, "error": {"code": code, "message": message}})

    def text(self, words):
        self.result({"content": [{"type": "text", "text": words}]})

    def begin_events(self, **headers):
        h = self.handler
        h.send_response(200)
        h.send_header("Content-Type", "text/event-stream")
        for name, value in headers.items():
            h.send_header(name.replace("_", "-"), value)
        h.send_header("Connection", "close")
        h.end_headers()

    def event(self, message=None, raw=None, id=None):
        text = f"id: {id}\n" if id else ""
        text += raw if raw is not None else f"data: {json.dumps(message)}\n\n"
        self.handler.wfile.write(text.encode())
        self.handler.wfile.flush()

    def response(self, words):
        return {"jsonrpc": "2.0", "id": self.id, "result": {"content": [{"type": "text", "text": words}]}}


class Web:
    def __init__(self, modern=False, session="s-1"):
        self.modern, self.session, self.requests, self.on = modern, session, [], {}
        self.lock = threading.Lock()
        self.stop = threading.Event()
        web = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do(self):
                size = int(self.headers.get("Content-Length") or 0)
                request = Request(self, self.rfile.read(size))
                with web.lock:
                    web.requests.append(request)
                try:
                    web.serve(request)
                except OSError:
                    self.close_connection = True

            do_POST = do_GET = do_DELETE = do

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        self.url = self.origin + "/mcp"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def serve(self, r):
        key = r.method if r.verb == "POST" else r.verb
        if key in self.on:
            return self.on[key](r)
        if r.verb != "POST":
            return r.reply(405 if r.verb == "GET" else 200)
        if r.id is None:
            return r.reply(202)
        if r.method == "server/discover":
            if not self.modern:
                return r.reply(400, {"jsonrpc": "2.0", "id": None, "error": {
                    "code": -32000, "message": "Bad Request: Server not initialized"}})
            return r.result({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                             "capabilities": {"tools": {}}})
        if r.method == "initialize":
            more = {"Mcp_Session_Id": self.session} if self.session else {}
            return r.result({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                             "serverInfo": {"name": "web", "version": "1"}}, **more)
        if not self.modern and self.session and r.headers["Mcp-Session-Id"] != self.session:
            return r.error(-32001, "Session not found", status=404)
        if r.method == "tools/list":
            return r.result({"tools": [{"name": "x", "inputSchema": {"type": "object"}}]})
        if r.method == "tools/call":
            return r.text("called")
        return r.result({})

    def seen(self, method):
        with self.lock:
            return [r for r in self.requests if (r.method if r.verb == "POST" else r.verb) == method]

    def close(self):
        self.stop.set()
        self.server.shutdown()
        self.server.server_close()


class OldWeb(Web):
    """The transport of 2024: a stream that names where to post, and carries every answer."""

    def __init__(self, address="/post?s=1", **more):
        super().__init__(**more)
        self.address, self.stream, self.opened = address, None, threading.Event()

    def serve(self, r):
        if r.verb == "GET":
            r.begin_events()
            r.event(raw=f"event: endpoint\ndata: {self.address}\n\n")
            self.stream = r
            self.opened.set()
            return self.stop.wait(60)
        if r.path == "/mcp":
            return r.reply(405)
        r.reply(202)
        if r.method == "tools/call" and r.params["name"] == "close":
            self.stream.handler.connection.shutdown(2)
        elif r.id is not None:
            result = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {}}
            if r.method == "tools/list":
                result = {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ("x", "close")]}
            if r.method == "tools/call":
                result = r.response("of old")["result"]
            with self.lock:
                self.stream.event({"jsonrpc": "2.0", "id": r.id, "result": result})
        return None
