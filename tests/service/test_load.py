# SPDX-License-Identifier: Apache-2.0
"""A hundred clients, good code and bad, clients that leave, and a server that is killed.

No request stays without an answer, what was answered is on record once, and memory stays flat.
RETORT_LOAD_SECONDS sets how long (default 5; 60 for a long look).
"""

import collections
import json
import os
import random
import socket
import subprocess
import threading
import time

import pytest

from house import RETORT, start

SECONDS = float(os.environ.get("RETORT_LOAD_SECONDS", "5"))
CLIENTS = 100
LIMITS = {"timeout": "400ms", "memory_mb": 64}
MIX = [  # weight, code, language, how it must end
    (40, "return sum(range(100))", "python", "SUCCESS"),
    (12, "return [1, 2, 3].map((n) => n * n)", "javascript", "SUCCESS"),
    (4, "echo hello", "bash", "SUCCESS"),
    (15, "raise ValueError('no')", "python", "FAILED"),
    (5, "def f(:", "python", "FAILED"),
    (4, "while True: pass", "python", "TIMEOUT"),
    (4, "x = bytearray(256 << 20)", "python", "MEMORY_ERROR"),
    (4, "import os; os.kill(os.getpid(), 11)", "python", "FAILED"),
]
WEIGHTS = [row[0] for row in MIX]


class Tally:
    def __init__(self):
        self.lock = threading.Lock()
        self.answers = {}  # id -> status
        self.keys = {}  # idempotency key -> id
        self.faults = []
        self.counts = collections.Counter()

    def note(self, kind, **more):
        with self.lock:
            self.counts[kind] += 1
            for name, (key, value) in more.items():
                getattr(self, name)[key] = value

    def fault(self, text):
        with self.lock:
            self.faults.append(text)


def leave_early(server, body):
    data = json.dumps(body).encode()
    with socket.create_connection((server.host, server.port), timeout=10) as connection:
        connection.sendall(b"POST /v1/executions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                           b"application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(data), data))
        time.sleep(random.random() * 0.05)


def client(server, tally, until, number, may_break):
    dice = random.Random(number)
    turn = 0
    while time.monotonic() < until:
        turn += 1
        _, code, language, expected = dice.choices(MIX, WEIGHTS)[0]
        body = {"language": language, "code": code, "policy": LIMITS}
        key = f"{number}-{turn}"
        if dice.random() < 0.3:
            body["idempotency_key"] = key
        try:
            if dice.random() < 0.05:
                leave_early(server, body)
                tally.note("left")
                continue
            reply = server.post("/v1/executions", body, timeout=60)
        except (OSError, ConnectionError, Exception) as why:
            if not may_break:
                tally.fault(f"{type(why).__name__}: {why}")
            tally.note("broken")
            time.sleep(0.05)
            continue
        if reply.status == 503:  # no slot came free: an answer, and one that says so
            tally.note("busy")
            continue
        if reply.status != 200:
            tally.fault(f"{reply.status} {reply.text[:300]}")
            continue
        answer = reply.json
        if answer["status"] != expected:
            tally.fault(f"{code!r} ended as {answer['status']}: {answer['error']}")
        tally.note(answer["status"], answers=(answer["id"], answer["status"]))
        if "idempotency_key" in body:
            tally.note("keyed", keys=(key, answer["id"]))


def storm(server, tally, seconds, may_break=False):
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=client, args=(server, tally, until, i, may_break))
               for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    return threads


def all_records(server):
    cursor = ""
    while True:
        page = server.get(f"/v1/executions?limit=500{cursor}").json
        yield from page["items"]
        if not page["next_cursor"]:
            return
        cursor = "&cursor=" + page["next_cursor"]


def resident(server):
    with open(f"/proc/{server.process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) >> 10


def check_records(server, tally):
    ids = collections.Counter()
    records = {}
    for row in all_records(server):
        ids[row["id"]] += 1
        records[row["id"]] = row["status"]
    assert not [i for i, count in ids.items() if count > 1]
    lost = [i for i in tally.answers if i not in records]
    assert not lost, f"{len(lost)} of {len(tally.answers)} answers are not on record"
    wrong = [i for i, status in tally.answers.items() if records[i] != status]
    assert not wrong
    assert not [i for i, s in records.items() if s in ("QUEUED", "RUNNING")]
    report = server.post("/v1/audit/verify").json
    assert report["intact"] and report["records"] >= len(tally.answers), report


def wait_idle(server):
    deadline = time.monotonic() + 30
    while True:
        stats = server.get("/v1/stats").json
        if stats["activeExecutions"] == 0 and stats["queuedExecutions"] == 0:
            return
        assert time.monotonic() < deadline, stats
        time.sleep(0.05)


def test_a_storm_loses_nothing(serving, database):
    with serving(*database) as server:
        tally = Tally()
        for thread in storm(server, tally, SECONDS / 4):
            thread.join()
        wait_idle(server)
        before = resident(server)
        for thread in storm(server, tally, SECONDS):
            thread.join()
        wait_idle(server)
        after = resident(server)
        print(dict(tally.counts), f"{before} MB then {after} MB")
        assert not tally.faults, tally.faults[:5]
        assert sum(tally.counts.values()) > CLIENTS
        check_records(server, tally)
        assert after < before + 40, f"{before} MB became {after} MB"


def test_a_killed_server_forgets_nothing_it_answered(database, tmp_path):
    folder = str(tmp_path)
    server = start(*database, data_dir=folder)
    tally = Tally()
    threads = storm(server, tally, SECONDS, may_break=True)
    time.sleep(SECONDS / 2)
    answered = len(tally.answers)
    server.kill()
    again = start("--port", server.port, *database, data_dir=folder)
    for thread in threads:
        thread.join()
    try:
        wait_idle(again)
        print(dict(tally.counts), f"{answered} answered before the kill")
        assert answered > 0 and len(tally.answers) > answered
        assert not tally.faults, tally.faults[:5]
        check_records(again, tally)
        for key, run in list(tally.keys.items())[:50]:
            assert again.get(f"/v1/executions/{run}").status == 200, key
    finally:
        assert again.stop() == 0


def test_a_stopping_server_finishes_what_it_began(serving):
    with serving() as server:
        replies = []
        body = {"code": "import time; time.sleep(1.5); return 'finished'"}
        thread = threading.Thread(target=lambda: replies.append(server.post("/v1/executions", body)))
        thread.start()
        deadline = time.monotonic() + 20
        while server.get("/v1/stats").json["activeExecutions"] == 0:
            assert time.monotonic() < deadline
        assert server.stop() == 0
        thread.join()
        assert replies[0].status == 200 and replies[0].json["result"] == "finished"
