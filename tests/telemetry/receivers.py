# SPDX-License-Identifier: Apache-2.0
"""Those who receive: the OTLP receiver of npm, and a server that answers as told."""

import collections
import http.server
import json
import os
import pathlib
import queue
import subprocess
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("RETORT", str(HERE.parents[1] / "build/retort"))).parent

Request = collections.namedtuple("Request", "at path headers body")


# ---- the receiver of npm ----

class Receiver:
    def __init__(self):
        self.process = subprocess.Popen([BUILD / "guests/node/node", HERE / "receiver.cjs"], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.url = self.next("url")

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)

    def next(self, key, within=20):
        """The next thing of that kind it says; what comes before is skipped."""
        deadline = time.monotonic() + within
        while True:
            line = self.lines.get(timeout=max(0.01, deadline - time.monotonic()))
            if key == "summary" and not line.startswith("{") and line.strip():
                return line
            if line.startswith("{") and key in (said := json.loads(line)):
                return said[key]

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=10)


# ---- a server that answers as told ----

def answer(status, body="{}", **headers):
    """One answer; header names with _ for -."""

    def give(handler):
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body.encode())

    return give


def hang(handler):
    handler.server.is_over.wait(30)
    handler.close_connection = True


def lose(handler):
    """Ends the connection without a word."""
    handler.close_connection = True


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            self.server.requests.append(Request(time.monotonic(), self.path, self.headers, body))
            script = self.server.script
            give = script.pop(0) if len(script) > 1 else script[0]
        give(self)

    def log_message(self, *args):
        pass


class StandIn(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script, tls=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script, self.requests, self.lock = list(script), [], threading.Lock()
        self.is_over, self.connections = threading.Event(), 0
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.root = f"{'https' if tls else 'http'}://127.0.0.1:{self.server_address[1]}"
        self.url = self.root + "/v1/traces"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def get_request(self):
        self.connections += 1
        return super().get_request()

    def handle_error(self, request, client_address):
        pass  # a client that goes away, or whose certificate is not welcome

    def close(self):
        self.is_over.set()
        self.shutdown()
        self.server_close()
