# SPDX-License-Identifier: Apache-2.0
"""Code agents over HTTP, MCP and the command line: from the first version to the last.

One server for the whole file, with three keys: Ann and her admin Bob are of one organisation, Eve
is the admin of another.
"""

import http.server
import json
import os
import subprocess
import threading
import time

import pytest

from house import RETORT, cli, serve

ADDER = {
    "name": "Adder", "description": "Adds two numbers", "language": "python",
    "code": "return input_data['a'] + input_data['b']",
    "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                    "required": ["a", "b"]},
    "outputSchema": {"type": "number"},
}


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("agents"))

    def key(user, organisation, role, workspace=None):
        made = subprocess.run([RETORT, "keys", "create", "--role", role, "--organisation", organisation,
                               "--workspace", workspace or organisation, "--user", user, "--name", user,
                               "--data-dir", folder], capture_output=True, text=True, check=True)
        return made.stdout.strip()

    keys = {"ann": key("ann", "acme", "member"), "bob": key("bob", "acme", "admin"),
            "vic": key("vic", "acme", "viewer"), "eve": key("eve", "rival", "admin"),
            "far": key("far", "acme", "member", "elsewhere")}
    with serve(data_dir=folder) as server:
        server.keys = keys
        yield server


class As:
    """The server with somebody's key, under one of the two addresses."""

    def __init__(self, server, name, prefix=""):
        self.server, self.key, self.prefix = server, server.keys[name], prefix

    def __getattr__(self, verb):
        def call(path, *body):
            return self.server.request(verb.upper(), self.prefix + path, *body, key=self.key)
        return call


@pytest.fixture(scope="module")
def ann(house):
    return As(house, "ann")


@pytest.fixture(scope="module")
def eve(house):
    return As(house, "eve")


def make(who, **body):
    reply = who.post("/code-agents", body)
    assert reply.status == 201, reply
    return reply.json


def test_the_life_of_an_agent(house, ann, eve):
    made = make(As(house, "ann", "/api/v1"), **ADDER)
    agent = "/code-agents/" + made["id"]
    assert made["version"] == "1.0.0" and made["usageCount"] == 0 and made["runtime"] == "vm2"
    assert made["packages"] == [] and made["isPublic"] is False and made["metadata"] == {}
    ran = ann.post(agent + "/execute", {"input": {"a": 2, "b": 3}})
    assert ran.status == 200 and ran.json["success"] and ran.json["output"] == 5
    assert {"agentId", "version", "executionTime"} <= set(ran.json["metadata"])

    changed = ann.put(agent, {"code": "return input_data['a'] * 100 + input_data['b']",
                              "changelog": "by a hundred"})
    assert changed.status == 200 and changed.json["version"] == "1.1.0"
    assert changed.json["changelog"][0]["changes"] == "by a hundred"
    assert ann.post(agent + "/execute", {"input": {"a": 2, "b": 3}}).json["output"] == 203
    pinned = ann.post(agent + "/execute?version=1.0.0", {"input": {"a": 2, "b": 3}}).json
    assert pinned["output"] == 5 and pinned["metadata"]["version"] == "1.0.0"
    assert [v["version"] for v in ann.get(agent + "/versions").json] == ["1.1.0", "1.0.0"]
    assert ann.get(agent + "/versions/1.0.0").json["code"] == ADDER["code"]
    assert ann.get(agent + "/versions/7.0.0").status == 404
    assert ann.post(agent + "/versions", {"version": "2.0.0", "code": "return 7"}).status == 201
    assert ann.post(agent + "/versions", {"version": "2.0.0", "code": "return 7"}).status == 409

    assert eve.get("/code-agents/registry?q=add%20numbers").json == []
    assert ann.post(agent + "/publish").json["isPublic"] is True
    found = eve.get("/code-agents/registry/public?q=add%20numbers").json
    assert [row["name"] for row in found] == ["Adder"] and "code" not in found[0]
    ran = eve.post(agent + "/execute", {"input": {"a": 1, "b": 1}, "version": "1.0.0"})
    assert ran.json["output"] == 2

    manifest = ann.post(agent + "/export-tool?version=1.1.0").json
    assert set(manifest) == {"name", "description", "inputSchema", "outputSchema", "handler"}
    assert manifest["handler"] == {"type": "code_agent", "agentId": made["id"], "version": "1.1.0"}
    assert ann.post(agent + "/export-tool?format=openai").json["function"]["name"] == "adder"
    assert ann.post(agent + "/export-tool?format=anthropic").json["input_schema"] == ADDER["inputSchema"]

    assert ann.post(agent + "/deprecate", {"message": "use sums"}).json["deprecated"] is True
    assert eve.get("/code-agents/registry").json == []
    ran = ann.post(agent + "/execute", {"input": {"a": 1, "b": 1}, "version": "1.0.0"}).json
    assert ran["warning"] == "Adder is deprecated: use sums"
    assert ann.get(agent).json["usageCount"] == 5
    assert ann.delete(agent).status == 204
    assert ann.get(agent).status == 404 and ann.post(agent + "/execute", {}).status == 404


def test_values_are_held_to_the_schemas(ann):
    agent = "/code-agents/" + make(ann, **{**ADDER, "name": "strict adder"})["id"]
    bad = ann.post(agent + "/execute", {"input": {"a": "x", "b": 1}})
    assert bad.status == 400 and bad.json["success"] is False
    assert bad.json["code"] == "INPUT_VALIDATION_ERROR" and "/a must be a number" in bad.json["error"]
    ann.put(agent, {"code": "return 'text'"})
    bad = ann.post(agent + "/execute", {"input": {"a": 1, "b": 1}})
    assert bad.status == 400 and bad.json["code"] == "OUTPUT_VALIDATION_ERROR"
    ann.put(agent, {"code": "raise ValueError('Test error')"})
    bad = ann.post(agent + "/execute", {"input": {"a": 1, "b": 1}})
    assert bad.status == 500 and bad.json["code"] == "PYTHON_EXECUTION_ERROR"
    assert "Test error" in bad.json["error"] and bad.json["details"]["line"] == 1
    refused = ann.post("/code-agents", {**ADDER, "name": "x", "inputSchema": {"type": "nothing"}})
    assert refused.status == 400 and "inputSchema" in refused.json["error"]
    figures = ann.get(agent + "/analytics").json
    assert figures["validationAttempts"] == 3 and figures["validationFailures"] == 2
    assert figures["totalExecutions"] == 3 and figures["totalErrors"] == 3
    assert figures["executionsOverTime"][0]["errorCount"] == 3


@pytest.mark.parametrize("language, files, answer", [
    ("python", {"main.py": "from lib.twice import twice\nreturn [twice(input_data), open('hello.txt').read()]",
                "lib/twice.py": "def twice(x):\n    return x * 2\n", "hello.txt": "it's 'me'\n"},
     [8, "it's 'me'\n"]),
    ("javascript", {"main.js": "import { twice } from './lib/twice.js';\nreturn twice(input);",
                    "lib/twice.js": "export const twice = (x) => x * 2;\n"}, 8),
    ("typescript", {"main.ts": "import { twice } from './lib/twice.ts';\nconst n: number = twice(input);\nreturn n;",
                    "lib/twice.ts": "export function twice(x: number): number {\n  return x * 2;\n}\n"}, 8),
    ("bash", {"main.sh": "source lib/twice.sh\nRESULT=$(twice $INPUT)",
              "lib/twice.sh": "twice() {\n  echo $(( $1 * 2 )) # it's \\ \"that\"\n}\n"}, 8),
])
def test_an_agent_of_several_files(ann, language, files, answer):
    agent = make(ann, name="files in " + language, language=language, files=files)
    entry = next(iter(files))
    assert agent["entryPoint"] == entry and agent["code"] == files[entry]
    assert set(agent["files"]) == set(files) - {entry}
    ran = ann.post(f"/code-agents/{agent['id']}/execute", {"input": 4})
    assert ran.json.get("output") == answer, ran


@pytest.mark.parametrize("language, name, code, line", [
    ("python", "main.py", "import part\n\ndef f():\n    raise ValueError('here')\nf()\n", 4),
    ("javascript", "main.js", "const a = 1;\nthrow new Error('here');\n", 2),
    ("typescript", "main.ts", "const a: number = 1;\nthrow new Error('here');\n", 2),
])
def test_errors_have_the_users_own_lines(ann, language, name, code, line):
    other = "part" + name[4:]
    agent = make(ann, name="lines in " + language, language=language, files={name: code, other: ""})
    details = ann.post(f"/code-agents/{agent['id']}/execute", {"input": 1}).json["details"]
    assert details["line"] == line
    assert f'"{name}", line {line}' in details["stack"] or f"{name}:{line}:" in details["stack"]


def test_the_environment_reaches_the_code_and_nobody_else(house, ann):
    agent = make(ann, name="secretive", language="python",
                 environment={"API_KEY": "sk-very-secret-1", "REGION": {"value": "eu", "secret": False}},
                 code="import os\nprint(os.environ['API_KEY'])\n"
                      "return [os.environ['API_KEY'], os.environ['REGION'], 'HOME' in os.environ, len(os.environ['API_KEY'])]")
    assert agent["environment"] == {"API_KEY": "********", "REGION": {"value": "eu", "secret": False}}
    ran = ann.post(f"/code-agents/{agent['id']}/execute", {})
    assert ran.json["output"][0] == "********" and ran.json["output"][1] == "eu" and ran.json["output"][3] == 16
    assert "sk-very" not in ran.text
    again = ann.put(f"/code-agents/{agent['id']}", {"environment": {"API_KEY": "********"}}).json
    assert again["environment"] == {"API_KEY": "********"}
    for folder, _, files in os.walk(house.data_dir):
        for file in files:
            with open(os.path.join(folder, file), "rb") as opened:
                assert b"sk-very-secret" not in opened.read(), file


def test_large_code_lies_in_the_object_directory(house, ann):
    code = "x = '" + "a" * 101 * 1024 + "'\nreturn len(x)"
    agent = make(ann, name="large", language="python", code=code)
    assert agent["codeStoragePath"] == f"code-agents/code-blobs/{agent['id']}/1.0.0.txt"
    path = os.path.join(house.data_dir, "objects", agent["codeStoragePath"])
    assert os.path.exists(path) and agent["code"] == code
    assert ann.post(f"/code-agents/{agent['id']}/execute", {}).json["output"] == 101 * 1024
    assert ann.delete(f"/code-agents/{agent['id']}").status == 204 and not os.path.exists(path)
    refused = ann.post("/code-agents", {"name": "huge", "language": "python", "code": "#" * (11 << 20)})
    assert refused.status == 413


def routes(agent_id):
    """Every route that names an agent, with a body that would do."""
    at = "/code-agents/" + agent_id
    yield from [("GET", at, None), ("PUT", at, {"code": "return 1"}), ("DELETE", at, None),
                ("GET", at + "/versions", None), ("POST", at + "/versions", {"version": "9.0.0"}),
                ("GET", at + "/versions/1.0.0", None), ("POST", at + "/execute", {"input": {}}),
                ("POST", at + "/export-tool", {}), ("POST", at + "/register-tool", {}),
                ("DELETE", at + "/register-tool", None), ("POST", at + "/deploy-mcp", {}),
                ("POST", at + "/publish", {}), ("POST", at + "/unpublish", {}),
                ("POST", at + "/deprecate", {}), ("POST", at + "/undeprecate", {}),
                ("GET", at + "/analytics", None), ("GET", "/code-agents/analytics?agentId=" + agent_id, None),
                ("GET", "/code-exec-logs/agent/" + agent_id, None),
                ("GET", "/code-exec-logs/agent/" + agent_id + "/stats", None)]


def test_somebody_elses_private_agent_is_not_there(house, ann):
    agent = make(ann, **{**ADDER, "name": "private one"})
    strangers = [As(house, "eve"), As(house, "far")]
    for who in strangers:
        for name in (agent["id"], "private-one"):
            for (method, path, body), (_, none, _) in zip(routes(name), routes("agent_1_0")):
                real = house.request(method, path, body, key=who.key)
                nothing = house.request(method, none, body, key=who.key)
                assert (real.status, real.json) == (404, {"error": "Code agent not found"}), (method, path)
                assert (nothing.status, nothing.json) == (real.status, real.json)
        assert all(row["name"] != "private one" for row in who.get("/code-agents").json)
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        assert who.post("/mcp/agents/" + agent["id"], message).status == 404
    assert ann.get("/code-agents/" + agent["id"]).status == 200


def test_a_private_agent_cannot_be_told_by_time(house, ann, eve):
    agent = make(ann, **{**ADDER, "name": "silent one", "code": "x = '" + "a" * 90000 + "'\nreturn 1"})
    times = {agent["id"]: [], "agent_1700000000000_0123456789abcdef": []}
    for _ in range(60):
        for name, spent in times.items():
            began = time.perf_counter()
            assert eve.get("/code-agents/" + name).status == 404
            spent.append(time.perf_counter() - began)
    real, none = map(min, times.values())  # a loaded machine is no stopwatch: the quickest of each
    assert abs(real - none) < max(0.0005, 0.5 * none), (real, none)


def test_who_may_do_what(house, ann):
    agent = make(ann, **{**ADDER, "name": "guarded"})
    at = "/code-agents/" + agent["id"]
    for method, path, body in [*routes(agent["id"]), ("POST", "/code-agents", {}), ("GET", "/code-agents", None),
                               ("GET", "/code-agents/registry", None), ("POST", "/code-agents/check-escape", {})]:
        for prefix in ("", "/api/v1"):
            reply = house.request(method, prefix + path, body)
            assert (reply.status, reply.json) == (401, {"error": "Unauthorized"}), (method, path)
    vic, bob, eve = As(house, "vic"), As(house, "bob"), As(house, "eve")
    assert vic.get("/code-agents/guarded").status == 200
    viewer = vic.post("/code-agents", ADDER)
    assert viewer.status == 403
    assert viewer.json == {"error": "Forbidden",
                           "message": "You do not have permission to create code_agent"}
    ann.post(at + "/publish")
    for method, path, body, action in [("PUT", at, {"code": "x"}, "update"), ("DELETE", at, None, "delete"),
                                       ("POST", at + "/unpublish", {}, "unpublish")]:
        reply = house.request(method, path, body, key=eve.key)
        assert reply.status == 403
        assert reply.json["message"] == f"You do not have permission to {action} code_agent"
    assert bob.put(at, {"description": "by the admin"}).status == 200


@pytest.mark.parametrize("body, status, text", [
    ({"name": "x", "language": "cobol", "code": "x"}, 422, "UNSUPPORTED_LANGUAGE"),
    ({"name": "x", "language": "python"}, 400, "MISSING_CODE"),
    ({"name": "x", "language": "python", "code": "1", "runtme": "vm2"}, 400, "did you mean runtime"),
    ([], 400, "object"), ("", 400, ""),
])
def test_a_body_that_makes_no_sense(ann, body, status, text):
    reply = ann.post("/code-agents", body)
    assert reply.status == status and text in reply.json["error"], reply


def test_a_registered_agent_is_a_tool(house, ann, eve):
    agent = make(ann, **{**ADDER, "name": "Tool sum", "description": "Adds two quantities of fruit"})
    made = ann.post(f"/code-agents/{agent['id']}/register-tool").json
    assert made["toolName"] == "agents:tool-sum" and made["version"] == "1.0.0"
    ann.put(f"/code-agents/{agent['id']}", {"code": "return 0"})

    def search(who):
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                   "params": {"name": "pml_search_tools", "arguments": {"query": "quantities of fruit"}}}
        return who.post("/mcp", message).text
    assert "agents:tool-sum" in search(ann) and "agents:tool-sum" not in search(eve)
    run = {"language": "python", "code": "return tools.call('agents:tool-sum', {'a': 1, 'b': 2})"}
    assert ann.post("/v1/executions", run).json["result"] == 3  # the version it was registered with
    other = {"language": "javascript", "code": "return await agents.toolSum({ a: 20, b: 22 })"}
    assert ann.post("/v1/executions", other).json["result"] == 42
    failed = eve.post("/v1/executions", run).json
    assert failed["success"] is False and "no tool" in failed["error"]["message"]
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "agents:tool-sum", "arguments": {"a": 2, "b": 2}}}
    assert "4" in ann.post("/mcp", call).json["result"]["content"][0]["text"]
    assert ann.delete(f"/code-agents/{agent['id']}/register-tool").status == 200
    assert "agents:tool-sum" not in search(ann)


def test_an_agent_that_calls_another(ann):
    inner = make(ann, **{**ADDER, "name": "inner sum"})
    ann.post(f"/code-agents/{inner['id']}/register-tool")
    code = "return tools.call('agents:inner-sum', {'a': input_data, 'b': 1}) * 10"
    outer = make(ann, name="outer", language="python", code=code, tools=["agents:inner-sum"])
    assert ann.post(f"/code-agents/{outer['id']}/execute", {"input": 4}).json["output"] == 50
    blind = make(ann, name="blind", language="python", code=code)
    assert ann.post(f"/code-agents/{blind['id']}/execute", {"input": 4}).status == 500


def test_agents_as_an_mcp_server_of_their_own(house, ann):
    one = make(ann, **{**ADDER, "name": "first served"})
    make(ann, name="second served", language="bash", code="echo hello")
    served = ann.post(f"/code-agents/{one['id']}/deploy-mcp",
                      {"config": {"serverName": "My Figures", "protocol": "http", "agents": ["second-served"]}}).json
    assert served["success"] and served["serverPath"] == "/mcp/agents/my-figures"
    assert served["toolName"] == "first-served"

    def ask(method, **params):
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return ann.post(served["serverPath"], message).json["result"]
    begun = ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"})
    assert "instructions" not in begun
    assert [tool["name"] for tool in ask("tools/list")["tools"]] == ["first-served", "second-served"]
    answer = ask("tools/call", name="first-served", arguments={"a": 20, "b": 22})
    assert answer["content"][0]["text"] == "42"
    wrong = ask("tools/call", name="first-served", arguments={"a": "x"})
    assert wrong["isError"] and "INPUT_VALIDATION_ERROR" in wrong["content"][0]["text"]
    assert ann.post("/mcp/agents/nothing", {"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == 404


def test_logs_and_figures(ann):
    agent = make(ann, **{**ADDER, "name": "logged"})
    for number in range(3):
        ann.post(f"/code-agents/{agent['id']}/execute", {"input": {"a": number, "b": 1}})
    logs = ann.get(f"/code-exec-logs/agent/{agent['id']}?limit=2").json
    assert logs["success"] and logs["count"] == 2 and logs["data"][0]["version"] == "1.0.0"
    assert logs["data"][0]["codeAgentId"] == agent["id"] and logs["data"][0]["validationPassed"] is True
    stats = ann.get(f"/api/v1/code-exec-logs/agent/{agent['id']}/stats").json["data"]
    assert stats["totalExecutions"] == 3 and stats["successRate"] == 1 and stats["totalErrors"] == 0
    figures = ann.get(f"/code-agents/analytics?agentId={agent['id']}&timeRange=7d").json
    assert figures["executionsByLanguage"] == {"python": 3}
    assert 0 < figures["latencyP50"] <= figures["latencyP95"] <= figures["latencyP99"]
    assert 0 < figures["registryReuseRate"] < 1
    assert ann.get("/code-exec-logs/workflow/none").json == {"success": True, "data": [], "count": 0}


def test_code_that_looks_for_a_way_out(ann):
    report = ann.post("/code-agents/check-escape", {"language": "python", "code": "import subprocess\nsubprocess.run('id')"}).json
    assert report["detected"] and report["severity"] == "high" and report["shouldBlock"]
    assert any(pattern.startswith("process: ") for pattern in report["patterns"])
    report = ann.post("/code-agents/check-escape", {"language": "javascript", "code": "return 1 + 1"}).json
    assert not report["detected"] and not report["shouldBlock"]


def test_agents_kept_in_a_folder(house, tmp_path):
    folder = tmp_path / "sums"
    (folder / "lib").mkdir(parents=True)
    (folder / "agent.yaml").write_text("name: Sums\nlanguage: python\nenvironment:\n  TOKEN: abcdefgh\n"
                                       "inputSchema:\n  type: array\n  items: {type: number}\n")
    (folder / "main.py").write_text("from lib.add import add\nreturn add(input_data)\n")
    (folder / "lib/add.py").write_text("def add(numbers):\n    return sum(numbers)\n")

    def agents(*args):
        done = cli(house, "agents", *map(str, args))
        return done.returncode, done.stdout.strip(), done.stderr.strip()
    assert agents("push", folder) == (0, "sums 1.0.0 is made", "")
    assert agents("push", folder) == (0, "sums 1.0.0 is there already", "")
    assert agents("run", "sums", "[1, 2, 3.5]")[:2] == (0, "6.5")
    code, _, complaint = agents("run", "sums", '["x"]')
    assert code == 1 and "INPUT_VALIDATION_ERROR" in complaint
    (folder / "lib/add.py").write_text("def add(numbers):\n    return -sum(numbers)\n")
    assert agents("push", folder, "--message", "minus")[1] == "sums 1.1.0 is made"
    assert "minus" in agents("versions", "sums")[1]
    other = tmp_path / "pulled"
    assert agents("pull", "sums", other)[0] == 0
    assert (other / "lib/add.py").read_text() == (folder / "lib/add.py").read_text()
    assert "abcdefgh" not in (other / "agent.yaml").read_text()
    assert agents("push", other)[1] == "sums 1.1.0 is there already"
    assert agents("pull", "sums@1.0.0", other)[0] == 0 and "-sum" not in (other / "lib/add.py").read_text()
    assert json.loads(agents("export", "sums", "--format", "mcp")[1])["name"] == "sums"
    for verb in ("publish", "unpublish", "deprecate"):
        assert agents(verb, "sums")[0] == 0
    assert agents("delete", "sums")[:2] == (0, "sums is gone")
    assert agents("show", "sums")[0] == 2


def test_a_budget_that_is_nearly_spent_is_told_once():
    told = []

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass
    receiver = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    with serve("--budget.webhook_url", f"http://127.0.0.1:{receiver.server_port}/") as server:
        assert server.get("/v1/budget").json == {"usd_month": 0, "alert_percent": 80, "spent_usd": 0, "own": False}
        assert server.put("/v1/budget", {"usd_month": 0.000001, "alert_percent": 50}).json["own"] is True
        server.run("return 1 #" + "x" * 4000)
        deadline = time.monotonic() + 60
        while not told and time.monotonic() < deadline:
            time.sleep(0.05)
        server.run("return 2")
        alerts = server.get("/v1/budget/alerts").json["items"]
        assert len(alerts) == len(told) == 1 and told[0]["alert_percent"] == 50
        assert "has spent" in server.log_text()
        assert server.put("/v1/budget", {"usd_month": -1}).status == 400
        assert server.get("/v1/costs").json["items"][0]["gpu_minutes"] == 0
    receiver.shutdown()
