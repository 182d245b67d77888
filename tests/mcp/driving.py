# SPDX-License-Identifier: Apache-2.0
"""Runs of build/mcp-client-driver, and how to start the servers it is given."""

import itertools
import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("RETORT", str(HERE.parents[1] / "build/retort"))).parent
NODE = str(BUILD / "guests/node/node")
WAIT = 60


def rogue_config(*options, **more):
    return {"command": sys.executable, "args": [str(HERE / "rogue.py"), *options], **more}


def npm_config(name, *args, **more):
    return {"command": NODE, "args": [str(HERE / "node_modules/.bin" / name), *args], **more}


class Client:
    def __init__(self, servers, folder, env=None):
        path = pathlib.Path(folder, "servers.json")
        path.write_text(json.dumps({"mcpServers": servers}))
        self.process = subprocess.Popen([BUILD / "mcp-client-driver", path], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **(env or {})})
        self.ids, self.answers, self.progress = itertools.count(1), {}, {}
        self.events, self.arrived = queue.Queue(), threading.Condition()
        self.words = []
        self.readers = [threading.Thread(target=self._read, daemon=True),
                        threading.Thread(target=lambda: self.words.append(self.process.stderr.read()),
                                         daemon=True)]
        for reader in self.readers:
            reader.start()

    def _read(self):
        for line in self.process.stdout:
            said = json.loads(line)
            with self.arrived:
                if "event" in said:
                    self.events.put(said)
                elif "progress" in said:
                    self.progress.setdefault(said["id"], []).append(said["progress"])
                else:
                    self.answers[said["id"]] = said
                self.arrived.notify_all()
        with self.arrived:
            self.answers["end"] = True
            self.arrived.notify_all()

    def send(self, op, **more):
        ticket = next(self.ids)
        self.process.stdin.write(json.dumps({"id": ticket, "op": op, **more}) + "\n")
        self.process.stdin.flush()
        return ticket

    def result(self, ticket, within=WAIT):
        with self.arrived:
            done = self.arrived.wait_for(lambda: ticket in self.answers or "end" in self.answers, within)
            assert done, "no answer from the client"
            assert ticket in self.answers, f"the driver ended: {self.process.wait()}, {self.words}"
            return self.answers[ticket]

    def start(self, tool, _options=None, **arguments):
        return self.send("call", tool=tool, arguments=arguments, **(_options or {}))

    def call(self, tool, _options=None, **arguments):
        return self.result(self.start(tool, _options, **arguments))

    def list(self, server):
        return self.result(self.send("list", server=server))

    def health(self, server):
        return self.result(self.send("health", server=server))["health"]

    def event(self, within=WAIT):
        return self.events.get(timeout=within)

    def close(self):
        """How it ended: (status, what it wrote to standard error)."""
        if self.process.poll() is None:
            self.process.stdin.close()
        status = self.process.wait(timeout=WAIT)
        for reader in self.readers:
            reader.join(timeout=10)
        self.process.stdout.close()
        self.process.stderr.close()
        return status, "".join(self.words)


def eventually(judge, within=10):
    """What `judge` returns once it is true; it is looked at until then, or until time is up."""
    deadline = time.monotonic() + within
    while not (verdict := judge()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return verdict
