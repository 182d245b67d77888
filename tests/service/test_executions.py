# SPDX-License-Identifier: Apache-2.0
"""POST /v1/executions and what can be asked about it afterwards."""

import concurrent.futures
import http.client
import json
import socket
import time

import pytest


def test_the_first_curl_of_the_readme_answers(server):
    answer = server.run("return 6 * 7")
    assert answer["result"] == 42 and answer["success"] and answer["status"] == "SUCCESS"
    assert answer["attestation"] and answer["cached"] is False
    assert answer["cost"]["tokens"] > 0


def test_curl_need_not_name_its_type(server):
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert server.request("POST", "/v1/executions", b'{"code":"return 1"}', form).json["result"] == 1
    page = {**form, "Origin": f"http://127.0.0.1:{server.port}"}
    assert server.request("POST", "/v1/executions", b'{"code":"return 1"}', page).status == 415


@pytest.mark.parametrize("language, code, result", [
    ("python", "return sum(range(10))", 45),
    ("javascript", "return [1, 2, 3].map((n) => n * n)", [1, 4, 9]),
    ("typescript", "enum Size { S = 1, M, L }; return Size.L", 3),
    ("bash", "RESULT=7", 7),
])
def test_every_language_answers(server, language, code, result):
    assert server.run(code, language)["result"] == result


def test_input_reaches_the_code_with_its_numbers_exact(server):
    reply = server.post("/v1/executions", json.dumps(
        {"code": "return input_data", "input": {"a": 12345678901234567890, "b": [1.5, None]}}).encode())
    assert reply.json["result"] == {"a": 12345678901234567890, "b": [1.5, None]}


@pytest.mark.parametrize("code, status, kind", [
    ("1 / 0", "FAILED", "RuntimeError"),
    ("def f(:", "FAILED", "SyntaxError"),
    ("while True: pass", "TIMEOUT", "TimeoutError"),
    ("x = bytearray(200 << 20)", "MEMORY_ERROR", "MemoryError"),
    ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "FAILED", "RuntimeError"),
    ("import socket; socket.create_connection(('192.0.2.1', 80), 1)", "FAILED", "PermissionError"),
])
def test_a_run_that_fails_is_an_answer(server, code, status, kind):
    answer = server.run(code, policy={"timeout": "1s", "memory_mb": 100})
    assert answer["status"] == status and not answer["success"]
    assert answer["error"]["type"] == kind, answer["error"]


@pytest.mark.parametrize("body, status, says", [
    (b"", 400, "JSON"),
    (b"{", 400, "line 1"),
    (b"[]", 400, "object"),
    (b"\xff\xfe", 400, ""),
    (b'{"language":"python"}', 400, "code"),
    (b'{"code":"  "}', 400, "MISSING_CODE"),
    (b'{"code":"1","language":"cobol"}', 422, "cobol"),
    (b'{"code":1}', 400, "'code' must be a string"),
    (b'{"code":"1","cod":"2"}', 400, "unknown member 'cod'"),
    (b'{"code":"1","policy":"nope"}', 400, "/v1/policies"),
    (b'{"code":"1","policy":{"timeout":"-5s"}}', 400, "timeout"),
    (b'{"code":"1","policy":{"timeout":"200s","memory":"60G"}}', 403, "memory"),
    (b'{"code":"1","policy":{"read":["/etc"]}}', 403, "read"),
    (b'{"code":"1","policy":{"network":"all"}}', 422, "network"),
    (b'{"code":"1","cache":"yes"}', 400, "bypass use refresh"),
    (b'{"code":"' + b"a" * (2 << 20) + b'"}', 413, "bytes"),
])
def test_a_request_that_makes_no_sense_is_told_what_to_do(server, body, status, says):
    reply = server.request("POST", "/v1/executions", body, {"Content-Type": "application/json"})
    assert reply.status == status, reply
    assert says in reply.json["error"]["message"]
    assert reply.json["error"]["request_id"] == reply.headers["X-Request-Id"]


def test_the_record_has_hashes_and_no_data(server):
    answer = server.run("return input_data['secret'] + ' marker-of-the-code'",
                        input={"secret": "marker-of-the-input"})
    record = server.get(f"/v1/executions/{answer['id']}").json
    assert record["status"] == "SUCCESS" and record["language"] == "python"
    assert record["hashes"]["code"] == answer["hashes"]["code"]
    listed = server.get("/v1/executions?limit=5").json["items"]
    assert answer["id"] in [row["id"] for row in listed]
    import pathlib
    for path in pathlib.Path(server.data_dir).rglob("*"):
        if path.is_file():
            assert b"marker-of-the" not in path.read_bytes(), path


def test_lists_are_filtered_and_paged(server):
    ids = [server.run(f"return {i}", agent_type="pager")["id"] for i in range(5)]
    server.run("1 / 0", agent_type="pager")
    seen, cursor = [], ""
    while True:
        page = server.get(f"/v1/executions?agent_type=pager&status=SUCCESS&limit=2{cursor}").json
        assert len(page["items"]) <= 2
        seen += [row["id"] for row in page["items"]]
        if not page["next_cursor"]:
            break
        cursor = "&cursor=" + page["next_cursor"]
    assert seen == ids[::-1]
    assert server.get("/v1/executions?cursor=nonsense").status == 400
    assert server.get("/v1/executions?limit=100000").status == 400
    assert server.get("/v1/executions/exec_unknown").status == 404


def test_events_come_as_they_happen(server):
    code = "import sys, time\nprint('one', flush=True)\ntime.sleep(0.5)\nprint('two', file=sys.stderr)\n3"
    times, events = [], []
    for event, data in server.events("POST", "/v1/executions", {"code": code}):
        times.append(time.monotonic())
        events.append((event, data))
    kinds = [event for event, _ in events]
    assert kinds[-1] == "result" and events[-1][1]["result"] == 3
    assert ("stdout", {"text": "one\n"}) in events and ("stderr", {"text": "two\n"}) in events
    assert kinds.index("started") < kinds.index("stdout") < kinds.index("stderr")
    assert times[-1] - times[kinds.index("stdout")] > 0.3


def test_a_run_nobody_waits_for_is_found_and_cancelled(server):
    reply = server.post("/v1/executions?wait=false", {"code": "import time; time.sleep(30)"})
    assert reply.status == 202
    run = reply.json["id"]
    assert server.get(f"/v1/executions/{run}").json["status"] in ("QUEUED", "RUNNING")
    assert server.post(f"/v1/executions/{run}/cancel").status == 202
    deadline = time.monotonic() + 10
    while server.get(f"/v1/executions/{run}").json["status"] != "CANCELLED":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert server.post(f"/v1/executions/{run}/cancel").status in (404, 409)
    assert server.post("/v1/executions/exec_unknown/cancel").status == 404


def test_an_async_run_ends_on_record(server):
    run = server.post("/v1/executions", {"code": "return 1", "wait": False}).json["id"]
    deadline = time.monotonic() + 10
    while server.get(f"/v1/executions/{run}").json["status"] != "SUCCESS":
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_idempotency_key_runs_once(server):
    body = {"code": "import random; return random.random()", "idempotency_key": "once-only"}
    first = server.post("/v1/executions", body)
    again = server.post("/v1/executions", body)
    assert first.status == again.status == 200
    assert first.json["result"] == again.json["result"] and first.json["id"] == again.json["id"]
    other = server.post("/v1/executions", {**body, "code": "return 1"})
    assert other.status == 409 and "another request" in other.json["error"]["message"]
    header = server.post("/v1/executions", {"code": "return 2"}, headers={"Idempotency-Key": "by-header"})
    assert server.post("/v1/executions", {"code": "return 2"},
                       headers={"Idempotency-Key": "by-header"}).json["id"] == header.json["id"]


def test_one_idempotency_key_at_once_runs_once(server):
    body = {"code": "import time, random; time.sleep(0.3); return random.random()",
            "idempotency_key": "all-at-once"}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: server.post("/v1/executions", body), range(8)))
    assert {r.status for r in replies} <= {200, 409}
    assert len({r.json["id"] for r in replies if r.status == 200}) == 1
    assert server.post("/v1/executions", body).status == 200


def test_the_cache_answers_only_who_asks_for_it(server):
    body = {"code": "import random; return random.random()", "cache": "use"}
    first, second = (server.post("/v1/executions", body).json for _ in range(2))
    assert not first["cached"] and second["cached"]
    assert first["result"] == second["result"] and first["id"] == second["id"]
    fresh = server.post("/v1/executions", {**body, "cache": "bypass"}).json
    assert not fresh["cached"] and fresh["result"] != first["result"]
    renewed = server.post("/v1/executions", {**body, "cache": "refresh"}).json
    assert not renewed["cached"] and renewed["result"] != first["result"]
    assert server.post("/v1/executions", body).json["result"] == renewed["result"]
    other = server.post("/v1/executions", {**body, "input": 1}).json
    assert not other["cached"]
    failing = {"code": "1 / 0", "cache": "use"}
    assert not any(server.post("/v1/executions", failing).json["cached"] for _ in range(2))


def test_big_output_becomes_a_handle(server):
    answer = server.run("print('x' * 99 + '\\n', end='') if False else None\n"
                        "for i in range(5000): print('line', i, 'ä' * 10)\n"
                        "return {'rows': [{'n': i} for i in range(20000)]}")
    handles = {h["of"]: h for h in answer["handles"]}
    assert answer["result"] is None and set(handles) == {"result", "stdout"}
    result, stdout = handles["result"], handles["stdout"]
    assert result["type"] == "application/json" and result["head"].startswith('{"rows"')
    assert len(json.dumps(answer)) < 64_000
    whole = server.get(f"/v1/artifacts/{result['handle']}/content?download=true")
    assert whole.status == 200 and len(whole.json["rows"]) == 20000
    assert len(whole.body) == result["size"]
    part = server.get(f"/v1/artifacts/{result['handle']}/content?json_path=$.rows[19999].n")
    assert part.status == 200 and "19999" in part.text
    lines = server.get(f"/v1/artifacts/{stdout['handle']}/content?line=4999&lines=2")
    assert "line 4999" in lines.text
    found = server.get(f"/v1/artifacts/{stdout['handle']}/content?search=line%204321")
    assert found.status == 200 and "4321" in found.text
    piece = server.get(f"/v1/artifacts/{stdout['handle']}/content?offset=0&limit=6")
    assert "line 0" in piece.text


def test_files_come_back_as_artifacts(server):
    answer = server.run("import os\nos.makedirs('out', exist_ok=True)\n"
                        "open('out/a.csv','w').write('a,b\\n1,2\\n')")
    [artifact] = answer["artifacts"]
    assert artifact["name"] == "a.csv" and artifact["type"].startswith("text/csv")
    content = server.get(f"/v1/artifacts/{artifact['handle']}/content?download=true")
    assert content.body == b"a,b\n1,2\n" and "a.csv" in content.headers["Content-Disposition"]
    assert server.get(f"/v1/executions/{answer['id']}/artifacts").json["items"][0]["id"] == artifact["handle"]
    assert server.delete(f"/v1/artifacts/{artifact['handle']}").status == 204
    assert server.get(f"/v1/artifacts/{artifact['handle']}/content").status == 404


def test_a_client_that_goes_away_takes_its_run_with_it(server):
    connection = socket.create_connection((server.host, server.port))
    body = json.dumps({"code": "import time; time.sleep(25)", "agent_type": "leaver"}).encode()
    connection.sendall(b"POST /v1/executions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                       b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    wait_until(lambda: server.get("/v1/stats").json["activeExecutions"] >= 1)
    connection.close()
    wait_until(lambda: server.get("/v1/executions?agent_type=leaver").json["items"])
    assert server.get("/v1/executions?agent_type=leaver").json["items"][0]["status"] == "CANCELLED"


def wait_until(condition, seconds=15):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def test_many_at_once_all_answer(server):
    def one(i):
        return server.run(f"return {i} * 2")["result"]
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        assert list(pool.map(one, range(100))) == [i * 2 for i in range(100)]


def test_a_connection_serves_many_requests(server):
    connection = http.client.HTTPConnection(server.host, server.port, timeout=30)
    for i in range(20):
        connection.request("POST", "/v1/executions", json.dumps({"code": f"return {i}"}),
                           {"Content-Type": "application/json"})
        assert json.loads(connection.getresponse().read())["result"] == i
    connection.close()
