# SPDX-License-Identifier: Apache-2.0
"""Who is let in: loopback and its names without keys, everybody else with one."""

import os
import ssl
import subprocess
import tempfile
import urllib.request

import pytest

from house import RETORT


def keys(server, *args, check=True):
    done = subprocess.run([RETORT, "keys", *args, "--data-dir", server.data_dir],
                          capture_output=True, text=True, timeout=60)
    assert not check or done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("host, status", [
    ("localhost", 200), ("127.0.0.1:8002", 200), ("[::1]:1", 200), ("LOCALHOST:99", 200),
    ("evil.example", 403), ("127.0.0.1.evil.example", 403), ("localhost.evil.example", 403),
    ("169.254.169.254", 403), ("", 400),
])
def test_only_a_name_of_this_machine_is_answered(server, host, status):
    reply = server.get("/v1/languages", headers={"Host": host})
    assert reply.status in (status, 403 if status == 400 else status), reply


@pytest.mark.parametrize("origin, status", [
    (None, 200), ("http://127.0.0.1:{port}", 200), ("http://127.0.0.1:1", 403),
    ("https://evil.example", 403), ("null", 403), ("http://localhost.evil.example", 403),
])
def test_a_foreign_page_cannot_call(server, origin, status):
    headers = {"Origin": origin.format(port=server.port)} if origin else {}
    assert server.get("/v1/languages", headers=headers).status == status
    assert server.post("/v1/executions", {"code": "return 1"}, headers=headers).status == status


def test_a_cross_site_request_without_an_origin_cannot_call(server):
    assert server.get("/v1/languages", headers={"Sec-Fetch-Site": "cross-site"}).status == 403


def test_without_keys_no_other_address_is_served():
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([RETORT, "serve", "--bind", "0.0.0.0", "--port", "0", "--data-dir", folder],
                              capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "retort keys create" in done.stderr


@pytest.fixture(scope="module")
def guarded(serving, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("guarded"))
    made = {}
    for role in ("owner", "admin", "member", "viewer"):
        done = subprocess.run([RETORT, "keys", "create", "--role", role, "--name", role,
                               "--data-dir", folder], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        made[role] = done.stdout.strip()
    other = subprocess.run([RETORT, "keys", "create", "--role", "admin", "--organisation", "rival",
                            "--workspace", "main", "--user", "eve", "--data-dir", folder],
                           capture_output=True, text=True)
    assert other.returncode == 0, other.stderr
    made["rival"] = other.stdout.strip()
    with serving("--bind", "0.0.0.0", data_dir=folder) as one:
        one.keys = made
        yield one


def test_with_keys_everybody_needs_one(guarded):
    reply = guarded.get("/v1/languages")
    assert reply.status == 401 and "Bearer" in reply.headers["WWW-Authenticate"]
    assert guarded.get("/v1/languages", key="rt_" + "x" * 43).status == 401
    assert guarded.get("/v1/languages", key=guarded.keys["viewer"]).status == 200
    assert guarded.get("/v1/languages", headers={"X-API-Key": guarded.keys["viewer"]}).status == 200
    assert guarded.get("/health").status == 200


@pytest.mark.parametrize("role, runs, makes_keys", [
    ("viewer", 403, 403), ("member", 200, 403), ("admin", 200, 201), ("owner", 200, 201)])
def test_a_role_says_what_one_may(guarded, role, runs, makes_keys):
    key = guarded.keys[role]
    assert guarded.post("/v1/executions", {"code": "return 1"}, key=key).status == runs
    assert guarded.post("/v1/keys", {"name": "made", "role": "viewer"}, key=key).status == makes_keys
    assert guarded.get("/v1/executions", key=key).status == 200


def test_nobody_makes_a_key_stronger_than_his_own(guarded):
    reply = guarded.post("/v1/keys", {"name": "x", "role": "owner"}, key=guarded.keys["admin"])
    assert reply.status == 403, reply


def test_an_organisation_sees_only_its_own(guarded):
    mine = guarded.post("/v1/executions", {"code": "return 1"}, key=guarded.keys["member"]).json["id"]
    rival = guarded.keys["rival"]
    assert guarded.get(f"/v1/executions/{mine}", key=rival).status == 404
    assert guarded.get(f"/v1/executions/{mine}/provenance", key=rival).status == 404
    assert mine not in [row["id"] for row in guarded.get("/v1/executions", key=rival).json["items"]]
    session = guarded.post("/v1/sessions", {"language": "python"}, key=guarded.keys["member"]).json["id"]
    assert guarded.get(f"/v1/sessions/{session}", key=rival).status == 404
    assert guarded.post(f"/v1/sessions/{session}/execute", {"code": "1"}, key=rival).status == 404
    assert guarded.delete(f"/v1/sessions/{session}", key=rival).status == 404
    assert guarded.delete(f"/v1/sessions/{session}", key=guarded.keys["member"]).status == 204
    cached = {"code": "import random; return random.random()", "cache": "use"}
    first = guarded.post("/v1/executions", cached, key=guarded.keys["member"]).json
    assert not guarded.post("/v1/executions", cached, key=rival).json["cached"]
    assert guarded.post("/v1/executions", cached, key=guarded.keys["member"]).json["result"] == first["result"]


def test_a_revoked_key_stops_working(guarded):
    made = guarded.post("/v1/keys", {"name": "short", "role": "member"}, key=guarded.keys["owner"]).json
    assert guarded.get("/v1/languages", key=made["secret"]).status == 200
    assert guarded.delete(f"/v1/keys/{made['id']}", key=guarded.keys["owner"]).status == 204
    import time
    deadline = time.monotonic() + 3
    while guarded.get("/v1/languages", key=made["secret"]).status != 401:
        assert time.monotonic() < deadline
    listed = guarded.get("/v1/keys", key=guarded.keys["owner"]).text
    assert made["secret"] not in listed and made["id"] in listed


def test_a_key_is_not_in_the_store_or_the_log(guarded):
    import pathlib
    for path in pathlib.Path(guarded.data_dir).rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            for secret in guarded.keys.values():
                assert secret.encode() not in data, path


def test_a_key_has_a_rate(guarded):
    made = guarded.post("/v1/keys", {"name": "slow", "role": "viewer", "rate_per_minute": 60},
                        key=guarded.keys["owner"]).json
    replies = [guarded.get("/v1/policies", key=made["secret"]) for _ in range(40)]
    refused = [r for r in replies if r.status == 429]
    assert refused and int(refused[0].headers["Retry-After"]) >= 1
    assert guarded.get("/v1/policies", key=guarded.keys["viewer"]).status == 200


def test_tls_by_certificate_files(serving, tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", tmp_path / "key.pem",
                    "-out", tmp_path / "cert.pem"], check=True, capture_output=True)
    folder = tempfile.mkdtemp()
    import re, threading
    process = subprocess.Popen([RETORT, "serve", "--port", "0", "--data-dir", folder,
                                "--server.tls_certificate", tmp_path / "cert.pem",
                                "--server.tls_key", tmp_path / "key.pem"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = next(m.group() for line in process.stdout if (m := re.search(r"https://\S+", line)))
        context = ssl.create_default_context(cafile=tmp_path / "cert.pem")
        with urllib.request.urlopen(url + "/health", context=context, timeout=20) as reply:
            assert reply.status == 200
    finally:
        process.terminate()
        process.wait(30)


def test_the_end_of_the_last_key_does_not_open_the_door(tmp_path):
    folder = str(tmp_path)
    made = subprocess.run([RETORT, "keys", "create", "--role", "owner", "--data-dir", folder],
                          capture_output=True, text=True, check=True)
    identity = made.stderr.split("key ", 1)[1].split(",")[0]
    subprocess.run([RETORT, "keys", "revoke", identity, "--data-dir", folder], check=True, capture_output=True)
    done = subprocess.run([RETORT, "serve", "--port", "0", "--data-dir", folder], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 2 and "revoked" in done.stderr


def test_an_admin_cannot_revoke_an_owner(guarded):
    rows = guarded.get("/v1/keys", key=guarded.keys["admin"]).json["items"]
    owner = next(row["id"] for row in rows if row["role"] == "owner")
    assert guarded.delete(f"/v1/keys/{owner}", key=guarded.keys["admin"]).status == 403
    assert guarded.get("/v1/languages", key=guarded.keys["owner"]).status == 200
