# SPDX-License-Identifier: Apache-2.0
"""Two servers on one PostgreSQL and one Redis: one house with two doors."""

import pathlib
import subprocess
import tempfile

import pytest

from house import RETORT


@pytest.fixture
def nodes(serving, postgres, redis):
    shared = ["--database-url", postgres, "--redis-url", redis]
    with serving(*shared, "--node.name", "one") as one, serving(*shared, "--node.name", "two") as two:
        yield one, two


def test_records_are_shared(nodes):
    one, two = nodes
    run = one.run("return 1")["id"]
    assert two.get(f"/v1/executions/{run}").json["status"] == "SUCCESS"
    two.run("return 2")
    report = one.post("/v1/audit/verify").json
    assert report["intact"] and report["records"] >= 2
    links = [n.get(f"/v1/executions/{run}/provenance").json for n in nodes]
    assert links[0] == links[1]


def test_the_cache_is_shared(nodes):
    one, two = nodes
    body = {"code": "import random; return random.random()", "cache": "use"}
    first = one.post("/v1/executions", body).json
    second = two.post("/v1/executions", body).json
    assert second["cached"] and second["result"] == first["result"]


def test_an_idempotency_key_is_shared(nodes):
    one, two = nodes
    body = {"code": "import random; return random.random()", "idempotency_key": "both"}
    first = one.post("/v1/executions", body).json
    assert two.post("/v1/executions", body).json["id"] == first["id"]


def test_a_session_is_found_at_the_node_that_has_it(nodes):
    one, two = nodes
    session = one.post("/v1/sessions", {"language": "python"}).json["id"]
    seen = two.get(f"/v1/sessions/{session}").json
    assert seen["host"] == "one" and seen["status"] == "ACTIVE"
    reply = two.post(f"/v1/sessions/{session}/execute", {"code": "1"})
    assert reply.status == 503 and "one" in reply.json["error"]["message"]
    assert one.delete(f"/v1/sessions/{session}").status == 204


def test_keys_are_shared(serving, postgres):
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([RETORT, "keys", "create", "--role", "owner", "--data-dir", folder,
                               "--database-url", postgres], capture_output=True, text=True, check=True)
    key = made.stdout.strip()
    with serving("--database-url", postgres) as one, serving("--database-url", postgres) as two:
        assert one.get("/v1/languages").status == two.get("/v1/languages").status == 401
        for node in (one, two):
            assert node.get("/v1/languages", key=key).status == 200
        extra = one.post("/v1/keys", {"name": "extra", "role": "viewer"}, key=key).json
        assert two.get("/v1/languages", key=extra["secret"]).status == 200
        one.delete(f"/v1/keys/{extra['id']}", key=key)
        import time
        deadline = time.monotonic() + 5
        while two.get("/v1/languages", key=extra["secret"]).status != 401:
            assert time.monotonic() < deadline
