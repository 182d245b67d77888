# SPDX-License-Identifier: Apache-2.0
"""Drives sessions through build/live-driver (LIVE_DRIVER), one house for a module of tests.

    a = house.open()                         a session; python unless told otherwise
    a.run("x = 1")                           the outcome of a run, as its JSON
    a.value("x + 1")                         the value of a run that must succeed
    b = a.branch()
"""

import itertools
import json
import os
import pathlib
import queue
import subprocess
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DRIVER = os.environ.get("LIVE_DRIVER", str(ROOT / "build/live-driver"))
ANSWER_SECONDS = 60


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message


class House:
    def __init__(self, cells=16, prefix=()):
        self.process = subprocess.Popen([*prefix, DRIVER, str(cells)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.tags, self.names = itertools.count(1), itertools.count(1)
        self.waiting = {}
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.process.stdout:
            answer = json.loads(line)
            self.waiting.pop(answer["tag"]).put(answer)
        for place in self.waiting.values():
            place.put(None)

    def ask(self, **order):
        """Sends an order; what comes back waits for the answer."""
        tag = next(self.tags)
        place = self.waiting[tag] = queue.Queue()
        self.process.stdin.write(json.dumps({"tag": tag, **order}) + "\n")
        self.process.stdin.flush()

        def wait():
            answer = place.get(timeout=ANSWER_SECONDS)
            assert answer is not None, "the driver has ended"
            if not answer["ok"]:
                raise Refused(answer["code"], answer["message"])
            return answer
        wait.tag = tag
        return wait

    def open(self, language="python", **policy):
        name = f"s{next(self.names)}"
        self.ask(op="open", live=name, language=language, policy=policy)()
        return Session(self, name, language)

    def end(self):
        self.process.stdin.close()
        return self.process.wait(30)


class Session:
    def __init__(self, house, name, language):
        self.house, self.name, self.language = house, name, language

    def ask(self, op, **more):
        return self.house.ask(op=op, live=self.name, **more)

    def start(self, code, language=None, policy=None, **more):
        return self.ask("run", code=code, language=language or self.language, policy=policy or {}, **more)

    def run(self, code, **more):
        return self.start(code, **more)()["outcome"]

    def value(self, code, **more):
        outcome = self.run(code, **more)
        assert outcome["success"], outcome["error"]
        return outcome["result"]

    def branch(self):
        name = f"s{next(self.house.names)}"
        answer = self.ask("branch", **{"as": name})()
        made = Session(self.house, name, self.language)
        made.us = answer["us"]
        return made

    def write(self, path, data):
        self.ask("write", path=path, data=data)()

    def read(self, path):
        return self.ask("read", path=path)()["data"]

    def list(self, path=""):
        return self.ask("list", path=path)()["files"]

    def names(self, path=""):
        return [file["path"] for file in self.list(path)]

    def remove(self, path):
        self.ask("remove", path=path)()

    def is_alive(self):
        return self.ask("alive")()["alive"]

    def close(self):
        self.ask("close")()


@pytest.fixture(scope="module")
def house():
    one = House()
    yield one
    assert one.end() == 0


@pytest.fixture
def a(house):
    session = house.open()
    yield session
    session.close()
