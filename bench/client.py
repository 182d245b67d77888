# SPDX-License-Identifier: Apache-2.0
"""A server to measure, and a client that costs next to nothing itself.

    with serving("--execution.pool", "0") as server, server.connect() as line:
        line.post("/v1/executions", {"code": "print(1)"})

Python's own HTTP client takes a tenth of a millisecond a request; a request made once and sent on
an open connection as it is takes a tenth of that.
"""

import contextlib
import json
import re
import selectors
import socket
import subprocess
import tempfile
import time

from peers import RETORT

START_SECONDS = 30


def request(method, path, body=b"", kind="application/json"):
    if isinstance(body, dict):
        body = json.dumps(body).encode()
    head = "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
    return (head % (method, path, kind, len(body))).encode() + body


class Answer:
    """Grows by what a socket gives; whole when the length its head names is there."""

    def __init__(self):
        self.data, self.end = bytearray(), None

    def take(self, chunk):
        assert chunk, "the server hung up"
        self.data += chunk
        if self.end is None:
            head = self.data.find(b"\r\n\r\n")
            if head >= 0:
                found = re.search(rb"content-length: (\d+)", self.data[:head], re.I)
                self.start = head + 4
                self.end = self.start + (int(found.group(1)) if found else 0)
        return self.end is not None and len(self.data) >= self.end

    @property
    def status(self):
        return int(self.data[9:12])

    @property
    def body(self):
        return bytes(self.data[self.start:self.end])


class Line:
    """A connection that stays open."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, message):
        self.socket.sendall(message)
        answer = Answer()
        while not answer.take(self.socket.recv(1 << 20)):
            pass
        return answer

    def ask(self, method, path, body=b"", **options):
        answer = self.send(request(method, path, body, **options))
        assert 200 <= answer.status < 300, bytes(answer.data[:2000])
        return json.loads(answer.body) if answer.body else None

    def post(self, path, body):
        return self.ask("POST", path, body)

    def time(self, message):
        """Milliseconds of a run, which must succeed."""
        began = time.perf_counter()
        answer = self.send(message)
        took = (time.perf_counter() - began) * 1000
        assert answer.status == 200 and b'"success":true' in answer.body, bytes(answer.data[:2000])
        return took


class Server:
    def __init__(self, process, port):
        self.process, self.port = process, port

    def connect(self):
        return Line(self.port)

    def at_once(self, message, count):
        """As many clients as that, each with a connection of its own: answers and their times."""
        waiting, done = selectors.DefaultSelector(), []
        for _ in range(count):
            began = time.perf_counter()
            line = self.connect()
            line.socket.sendall(message)
            waiting.register(line.socket, selectors.EVENT_READ, (line, Answer(), began))
        while len(done) < count:
            for key, _ in waiting.select():
                line, answer, began = key.data
                if answer.take(line.socket.recv(65536)):
                    done.append((answer, (time.perf_counter() - began) * 1000))
                    waiting.unregister(line.socket)
                    line.socket.close()
        return done


@contextlib.contextmanager
def serving(*options):
    with tempfile.TemporaryDirectory(prefix="retort-bench-") as folder:
        with open(folder + "/log", "wb") as log:
            process = subprocess.Popen(
                [RETORT, "serve", "--port", "0", "--data-dir", folder, "--server.rate_per_minute", "0",
                 *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, cwd=folder)
        try:
            first = process.stdout.readline().decode()
            found = re.search(r"http://[^:]+:(\d+)", first)
            assert found, first + open(folder + "/log").read()
            yield Server(process, int(found.group(1)))
        finally:
            process.terminate()
            process.wait(START_SECONDS)
            process.stdout.close()
