# SPDX-License-Identifier: Apache-2.0
"""What is on record, that it can be trusted, and that it can be taken away."""

import json
import pathlib
import sqlite3
import subprocess
import time

import pytest

from house import RETORT, start


def retort(*args, server):
    return subprocess.run([RETORT, *args, "--data-dir", server.data_dir], capture_output=True,
                          text=True, timeout=60)


def test_records_outlive_the_server(serving, tmp_path):
    with serving(data_dir=str(tmp_path)) as first:
        run = first.run("return 1")["id"]
    with serving(data_dir=str(tmp_path)) as second:
        assert second.get(f"/v1/executions/{run}").json["status"] == "SUCCESS"
        assert second.post("/v1/audit/verify").json["intact"]


def test_what_a_killed_server_ran_is_recorded_as_interrupted(tmp_path):
    server = start(data_dir=str(tmp_path))
    run = server.post("/v1/executions", {"code": "import time; time.sleep(60)", "wait": False}).json["id"]
    server.kill()
    again = start(data_dir=str(tmp_path))
    try:
        record = again.get(f"/v1/executions/{run}").json
        assert record["status"] == "FAILED" and record["error"]["type"] == "Interrupted"
    finally:
        again.stop()


@pytest.mark.parametrize("change", [
    "UPDATE provenance SET outputs_hash = code_hash WHERE sequence = 2",
    "DELETE FROM provenance WHERE sequence = 2",
    "DELETE FROM provenance WHERE sequence = 3",
    "UPDATE provenance SET success = NOT success WHERE sequence = 1",
    "UPDATE executions SET code_hash = input_hash",
])
def test_a_changed_record_is_found(serving, change):
    with serving() as server:
        for i in range(3):
            server.run(f"return {i}")
        assert retort("audit", "verify", server=server).returncode == 0
        with sqlite3.connect(next(pathlib.Path(server.data_dir).glob("*.db"))) as database:
            database.execute(change)
        done = retort("audit", "verify", server=server)
        assert done.returncode == 1 and "faults" in done.stdout, done
        assert not server.post("/v1/audit/verify").json["intact"]


def test_costs_are_summed_by_day_and_month(server):
    before = server.get("/v1/costs/summary?period=day").json
    for code in ("return 1", "return 'x' * 1000", "1 / 0"):
        server.run(code, input={"rows": list(range(500))})
    after = server.get("/v1/costs/summary?period=day").json
    assert after["executions"] - before["executions"] == 3
    assert after["failed"] - before["failed"] == 1
    assert after["cost_usd"] > before["cost_usd"] and after["traditional_cost_usd"] > after["cost_usd"]
    assert 0 < after["savings_percent"] <= 100
    months = server.get("/v1/costs?period=monthly").json["items"]
    assert months[0]["date"] == time.strftime("%Y-%m", time.gmtime())


def test_the_figures_people_ask_for(server):
    server.run("return 1")
    kpis = server.get("/v1/kpis").json
    for name in ("success_rate", "average_time_seconds", "cost_per_request_usd", "pii_detection_rate",
                 "pattern_reuse_rate", "escape_incidents", "validation_failure_rate",
                 "registry_reuse_rate", "latency_ms"):
        assert name in kpis
    assert kpis["latency_ms"]["median"] > 0
    text = server.get("/metrics").text
    for name in ("retort_executions_total", "retort_execution_duration_seconds_bucket",
                 "retort_queue_wait_seconds_bucket", "retort_cache_requests_total",
                 "retort_http_requests_total", "retort_running_executions"):
        assert name in text, name


def test_a_person_can_have_everything_or_have_it_gone(server):
    answer = server.run("open('out/f.txt','w').write('x') if __import__('os').makedirs('out', exist_ok=True) "
                        "is None else 0\nreturn 1", user_id="jane-doe-4711", agent_type="claude")
    export = server.get("/v1/users/jane-doe-4711/export")
    assert export.status == 200 and answer["id"] in export.text
    receipt = server.delete("/v1/users/jane-doe-4711/data")
    assert receipt.status == 200 and receipt.json["executions"] >= 1
    assert "jane-doe-4711" not in server.get(f"/v1/executions/{answer['id']}").text
    for path in pathlib.Path(server.data_dir).rglob("*"):
        if path.is_file() and not path.name.endswith(".log"):
            assert b"jane-doe-4711" not in path.read_bytes(), path
    assert server.post("/v1/audit/verify").json["intact"]


def test_retention_lets_old_rows_go_and_keeps_the_chain(serving):
    with serving() as server:
        run = server.run("return 1")["id"]
        with sqlite3.connect(next(pathlib.Path(server.data_dir).glob("*.db"))) as database:
            database.execute("UPDATE executions SET created_ms = created_ms - 200 * 86400000, "
                             "finished_ms = finished_ms - 200 * 86400000")
        dry = server.post("/v1/retention", {"days": 90, "dry_run": True}).json
        assert dry["executions"] == 1 and server.get(f"/v1/executions/{run}").status == 200
        assert server.post("/v1/retention", {"days": 90}).json["executions"] == 1
        assert server.get(f"/v1/executions/{run}").status == 404
        assert server.post("/v1/audit/verify").json["intact"]


def test_migrate_says_what_it_did_and_does_it_once(tmp_path):
    def migrate(*args):
        return subprocess.run([RETORT, "migrate", "--data-dir", str(tmp_path), *args],
                              capture_output=True, text=True, timeout=60, check=True).stdout
    assert "applied" in migrate() and "0 applied" in migrate()
    assert "CREATE TABLE IF NOT EXISTS executions" in migrate("--sql")


def test_the_printed_schema_is_postgresql(postgres):
    text = subprocess.run([RETORT, "migrate", "--sql"], capture_output=True, text=True, check=True).stdout
    for _ in range(2):
        subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", postgres], input=text, text=True,
                       check=True, capture_output=True)


def test_the_feature_flag_switches_runs_off(serving):
    with serving("--execution.enabled", "false") as server:
        assert server.post("/v1/executions", {"code": "return 1"}).status == 503
        reply = server.post("/api/agent/execute-code", {"code": "print(1)"})
        assert reply.status == 503 and reply.json["success"] is False
        assert server.get("/health").status == 200


def test_kept_data_is_the_operators_choice(serving):
    with serving("--retention.keep_data", "true") as server:
        answer = server.run("return 'kept-marker'")
        found = any(b"kept-marker" in path.read_bytes() for path in pathlib.Path(server.data_dir).rglob("*")
                    if path.is_file())
        assert found and answer["result"] == "kept-marker"


def test_erasure_reaches_live_sessions_and_the_cache(server):
    mine = server.post("/v1/sessions", {"language": "python"}).json["id"]
    body = {"code": "import random; return random.random()", "cache": "use", "user_id": "max-4712"}
    server.post("/v1/executions", body)
    assert server.post("/v1/executions", body).json["cached"]
    assert server.delete("/v1/users/max-4712/data").status == 200
    assert not server.post("/v1/executions", {**body, "user_id": "somebody"}).json["cached"]
    assert server.delete("/v1/users/local/data").status == 200
    assert server.post(f"/v1/sessions/{mine}/execute", {"code": "1"}).status == 404


def test_a_cached_answer_is_for_the_very_same_input(server):
    def ask(**members):
        return server.post("/v1/executions", {"code": "return [input_data, list(input_data or [])]",
                                              "cache": "use", **members}).json
    first = json.dumps(ask(input={"b": 1, "a": 2})["result"])
    assert json.dumps(ask(input={"a": 2, "b": 1})["result"]) != first
    assert ask()["result"] == [None, []] and ask(input={})["result"] == [{}, []]


@pytest.mark.parametrize("command", [("audit", "verify"), ("users", "erase", "x"), ("keys", "list"),
                                     ("retention", "--dry-run")])
def test_a_mistyped_data_directory_is_no_new_house(tmp_path, command):
    typo = tmp_path / "typo"
    done = subprocess.run([RETORT, *command, "--data-dir", str(typo)], capture_output=True, text=True)
    assert done.returncode == 2 and "--data-dir" in done.stderr and not typo.exists()
