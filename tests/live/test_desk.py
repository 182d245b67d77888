# SPDX-License-Identifier: Apache-2.0
"""Tools called by running code, through the desk of desk.c: what each tool does is told in desk.h."""

import json

import pytest

SERVERS = ["github", "my-server"]
PATIENT = {"timeout": "20s"}  # the machine may be busy; nothing here needs long


@pytest.fixture(scope="module")
def fresh(house):
    def run(language, code, desk=SERVERS, policy=PATIENT, **more):
        tools = {} if desk is None else {"desk": desk}
        return house.ask(op="run", language=language, code=code, policy=policy, **tools, **more)()["outcome"]
    return run


@pytest.fixture(scope="module")
def value(fresh):
    def run(*args, **more):
        outcome = fresh(*args, **more)
        assert outcome["success"], outcome["error"]
        return outcome["result"]
    return run


def echo(tool, **arguments):
    return {"tool": tool, "arguments": arguments}


# -- each language ------------------------------------------------------------------------------



@pytest.mark.parametrize("language, code", [
    ("python", "return github.echo(limit=3)"),
    ("python", "return github.echo({'limit': 3})"),
    ("python", "return await github.echo(limit=3)"),
    ("python", "return mcp.github.echo(limit=3)"),
    ("python", "return mcp['github']['echo'](limit=3)"),
    ("python", "return tools.call('github:echo', {'limit': 3})"),
    ("javascript", "return await github.echo({ limit: 3 })"),
    ("javascript", "github.echo({ limit: 3 })"),
    ("javascript", "return await mcp['github'].echo({ limit: 3 })"),
    ("javascript", "return await tools.call('github:echo', { limit: 3 })"),
    ("typescript", "const limit: number = 3; return await github.echo({ limit }) as object"),
    ("bash", "retort-tool github:echo '{\"limit\": 3}'"),
    ("bash", "retort-tool github:echo limit=3"),
    ("bash", "RESULT=$(echo '{\"limit\": 3}' | retort-tool github:echo -)"),
])
def test_a_call_brings_its_arguments_and_returns_a_value(value, language, code):
    assert value(language, code) == echo("github:echo", limit=3)


def test_a_server_whose_name_is_no_identifier_has_one_in_each_language(value):
    wanted = [echo("my-server:echo")] * 2 + [echo("a.b:echo")] * 2
    servers = ["my-server", "a.b", "no good", '"']
    assert value("python", "return [my_server.echo(), mcp['my-server'].echo(), a_b['echo'](), "
                           "tools.call('a.b:echo')]", desk=servers) == wanted
    assert value("javascript", "return Promise.all([myServer.echo(), mcp['my-server'].echo(), aB.echo(), "
                               "tools.call('a.b:echo')])", desk=servers) == wanted


def test_the_daemons_own_tools_have_their_objects(value):
    wanted = [echo("tools:search", query="tickets", limit=5), echo("tools:describe", name="github:x"),
              echo("tools:list"), echo("pii:count", value=[1]), echo("pii:types", value="a@b.c")]
    assert value("python", "return [tools.search('tickets'), tools.describe('github:x'), tools.list(), "
                           "pii.count([1]), pii.types('a@b.c')]") == wanted
    assert value("javascript", "return Promise.all([tools.search('tickets'), tools.describe('github:x'), "
                               "tools.list(), pii.count([1]), pii.types('a@b.c')])") == wanted
    lines = value("bash", "retort-tool search tickets --limit 5; retort-tool describe github:x; retort-tool list")
    assert [json.loads(line) for line in lines.split("\n")] == wanted[:3]


@pytest.mark.parametrize("language, code", [
    ("python", "try:\n    github.fail()\nexcept MCPToolError as e:\n    return [e.type, e.tool_name, str(e), e.original_message]"),
    ("python", "try:\n    await github.fail()\nexcept MCPToolError as e:\n    return [e.type, e.tool_name, str(e), e.original_message]"),
    ("javascript", "try { await github.fail() } catch (e) { if (e instanceof MCPToolError && e instanceof Error) "
                   "return [e.type, e.toolName, e.message, e.originalMessage] }"),
])
def test_a_tool_that_fails_raises_what_code_can_catch(value, language, code):
    assert value(language, code) == ["MCPToolError", "github:fail",
                                     "Tool error in 'github:fail': it is not to be", "it is not to be"]


@pytest.mark.parametrize("language, code, line", [
    ("python", "x = 1\ngithub.fail()", 2),
    ("python", "import asyncio\n\nawait asyncio.gather(github.fail())", 3),
    ("javascript", "const x = 1;\nawait github.fail();\nreturn x", 2),
    ("typescript", "const f = async (): Promise<void> => {\n  await github.fail();\n};\nawait f()", 2),
])
def test_an_error_nobody_catches_names_the_users_line(fresh, language, code, line):
    error = fresh(language, code)["error"]
    assert (error["type"], error["name"], error["line"]) == ("RuntimeError", "MCPToolError", line)
    assert "/retort" not in error["stack"] and "desk" not in error["stack"]


def test_in_a_script_a_tool_that_fails_is_a_status(fresh):
    outcome = fresh("bash", "retort-tool github:fail")
    assert outcome["exit_code"] == 1
    assert "Tool error in 'github:fail': it is not to be" in outcome["stderr"]


PARALLEL = [
    ("python", "import asyncio\nreturn await asyncio.gather(*[github.gate(n=5) for _ in range(5)])"),
    ("python", "from concurrent.futures import ThreadPoolExecutor as Pool\nwith Pool(5) as pool:\n"
               "    return list(pool.map(lambda _: github.gate(n=5), range(5)))"),
    ("python", "import asyncio\nreturn await asyncio.gather(*[asyncio.to_thread(github.gate, n=5) for _ in range(3)], "
               "*[github.gate(n=5) for _ in range(2)])"),
    ("javascript", "return Promise.all(Array.from({ length: 5 }, () => github.gate({ n: 5 })))"),
    ("bash", "for i in 1 2 3 4 5; do retort-tool github:gate n=5 & done | tr '\\n' , | sed 's/^/[/; s/,$/]/'"),
]


@pytest.mark.parametrize("language, code", PARALLEL)
def test_calls_run_side_by_side(value, language, code):
    assert value(language, code) == [True] * 5


@pytest.mark.parametrize("language, code", [
    ("python", "import asyncio\nreturn len(await asyncio.gather(*[github.echo(i=i) for i in range(500)]))"),
    ("python", "from concurrent.futures import ThreadPoolExecutor as Pool\nwith Pool(40) as pool:\n"
               "    return sum(1 for i, x in enumerate(pool.map(lambda i: github.echo(i=i), range(500)))\n"
               "               if x['arguments']['i'] == i)"),
    ("javascript", "const all = await Promise.all(Array.from({ length: 500 }, (_, i) => github.echo({ i })));\n"
                   "return all.filter((x, i) => x.arguments.i === i).length"),
])
def test_any_number_of_calls_may_be_asked_for_and_each_gets_its_own_answer(value, language, code):
    assert value(language, code) == 500


@pytest.mark.parametrize("language, code", [
    ("python", "return len(github.huge(bytes=20_000_000))"),
    ("python", "return len(await github.huge(bytes=20_000_000))"),
    ("javascript", "return (await github.huge({ bytes: 20_000_000 })).length"),
    ("bash", "echo $(( $(retort-tool github:huge bytes=20000000 | wc -c) - 3 ))"),
])
def test_a_value_may_be_many_megabytes(value, language, code):
    assert value(language, code) == 20_000_000 - 2


@pytest.mark.parametrize("language, code", [
    ("python", "return [github.slow(ms=20, value=[1]), await github.slow(ms=20, value=2)]"),
    ("javascript", "return [await github.slow({ ms: 20, value: [1] }), await github.slow({ ms: 20, value: 2 })]"),
])
def test_an_answer_may_come_later(value, language, code):
    assert value(language, code) == [[1], 2]


def test_a_pending_call_keeps_a_run_of_node_alive(fresh):
    outcome = fresh("javascript", "github.slow({ ms: 50, value: 'late' }).then(console.log); return 1")
    assert (outcome["result"], outcome["stdout"]) == (1, "late\n")


def test_in_an_event_loop_a_call_stands_for_its_value(value):
    code = """
import asyncio
await asyncio.sleep(0)
x, n, t = github.echo(a=[1, 2]), github.slow(ms=1, value=20), github.slow(ms=1, value="text")
assert len(x) == 2 and x["tool"] == "github:echo" and "tool" in x and list(x) == ["tool", "arguments"]
assert n == 20 and n + 1 == 21 and 1 + n == 21 and n > 3 and int(n) == 20 and [*range(30)][n] == 20
assert t.upper() == "TEXT" and f"{t:>6}" == "  text" and str(t) == "text" and t == "text"
assert not github.slow(ms=1, value=[])
try:
    github.fail()["x"]
except MCPToolError:
    return [x, await n]
"""
    assert value("python", code) == [echo("github:echo", a=[1, 2]), 20]


# -- names --------------------------------------------------------------------------------------

def test_what_the_code_or_the_input_calls_so_itself_wins(value):
    assert value("python", "return github", input={"github": 5}) == 5
    assert value("javascript", "return github", input={"github": 5}) == 5
    assert value("python", "github = 6\nreturn github") == 6
    assert value("javascript", "const github = 6; return github") == 6


def test_what_the_language_has_is_not_hidden_by_a_server(value):
    servers = ["fetch", "console", "print", "list", "tools", "for", "3d-print"]
    code = "return [callable(print), list('ab'), tools.list()['tool'], mcp['print'].echo()['tool'], _3d_print.echo()['tool']]"
    assert value("python", code, desk=servers) == [True, ["a", "b"], "tools:list", "print:echo", "3d-print:echo"]
    code = "return [typeof fetch, typeof console.log, (await mcp.fetch.echo()).tool, (await _3dPrint.echo()).tool]"
    assert value("javascript", code, desk=servers) == ["function", "function", "fetch:echo", "3d-print:echo"]


def test_questions_of_the_language_are_no_calls(fresh):
    outcome = fresh("javascript", """
        await github; await mcp;
        console.log(github, `${mcp}`, JSON.stringify([github]), github == 1, typeof github.then);
        return [github.toJSON, github.constructor, github.prototype, github.__proto__, github[Symbol.iterator],
                github['a b'], github['x__proto__'], github['x'.repeat(101)]].every((x) => x === undefined)""")
    assert outcome["result"] is True
    assert outcome["stdout"] == "<tools of github> <servers github, my-server> [{}] false undefined\n"
    outcome = fresh("python", """
import copy, inspect
assert not hasattr(github, "__len__") and not hasattr(github, "a b") and not hasattr(github, "x__proto__")
inspect.iscoroutine(github); inspect.isawaitable(github)
print(github, mcp, github.echo, list(mcp))""")
    assert outcome["success"], outcome["error"]
    assert outcome["stdout"] == "<tools of github> <servers github, my-server> <tool github:echo> ['github', 'my-server']\n"


@pytest.mark.parametrize("language, code, message", [
    ("python", "mcp.gitlab.x()", "there is no server 'gitlab'; there are: github, my-server"),
    ("javascript", "return await mcp.gitlab.x()", "there is no server 'gitlab'; there are: github, my-server"),
    ("python", "tools.call('a b')", "'a b' is not the name of a tool"),
    ("python", "tools.call('github:__proto__')", "is not the name of a tool"),
    ("javascript", "return await tools.call('github:constructor')", "is not the name of a tool"),
    ("python", "github.echo(5)", "github.echo() takes its arguments by name, or as one dict"),
    ("javascript", "return await github.echo(5)", "github.echo() takes its arguments as one object"),
    ("python", "x = []\nx.append(x)\ngithub.echo(x=x)", "the arguments of github:echo cannot be JSON"),
    ("python", "github.echo(x='x' * 2_000_000)", "have 2000009 bytes and at most 1048576 fit"),
    ("javascript", "return await github.echo({ x: 'x'.repeat(2_000_000) })", "have 2000008 bytes and at most 1048576 fit"),
])
def test_a_call_that_cannot_be_made_says_why(fresh, language, code, message):
    assert message in fresh(language, code, policy={"output": "1M"})["error"]["message"]


def test_small_questions_about_dates(value):
    code = """
import datetime
now = datetime.datetime.now(datetime.timezone.utc)
ago = lambda **kw: now - datetime.timedelta(**kw)
return [is_last_week(ago(days=1)), is_last_week(ago(days=6).isoformat()), is_last_week(ago(days=8)),
        is_last_week(ago(days=-1)), is_last_week(now.timestamp() - 5), is_last_week((now.timestamp() - 5) * 1000),
        is_last_week("soon"), is_last_week(None), is_last_month(ago(days=29)), round(days_ago(ago(days=3)))]"""
    wanted = [True, True, False, False, True, True, False, False, True, 3]
    assert value("python", code) == wanted
    code = """
const ago = (days) => new Date(Date.now() - days * 86400000);
return [isLastWeek(ago(1)), isLastWeek(ago(6).toISOString()), isLastWeek(ago(8)), isLastWeek(ago(-1)),
        isLastWeek(Date.now() / 1000 - 5), isLastWeek(Date.now() - 5), isLastWeek('soon'), isLastWeek(null),
        isLastMonth(ago(29)), Math.round(daysAgo(ago(3)))]"""
    assert value("javascript", code) == wanted


# -- time ---------------------------------------------------------------------------------------

def test_while_a_person_is_waited_for_the_clock_stands_still(fresh):
    outcome = fresh("python", "return github.approve(ms=1300)", policy={"timeout": "1s"})
    assert outcome["success"] and outcome["result"] == "approved", outcome["error"]


def test_after_it_the_rest_of_the_time_counts(fresh):
    outcome = fresh("python", "github.approve(ms=300)\nwhile True: pass", policy={"timeout": "300ms"})
    assert outcome["status"] == "TIMEOUT"


@pytest.mark.parametrize("language, code", [
    ("python", "github.never()"), ("javascript", "await github.never()"), ("bash", "retort-tool github:never"),
])
def test_a_call_that_is_never_answered_ends_with_the_run(fresh, language, code):
    assert fresh(language, code, policy={"timeout": "300ms"})["status"] == "TIMEOUT"


def test_a_run_that_waits_for_a_person_can_be_cancelled(house):
    a = house.open("python")
    wait = a.start("open('begun', 'w').close()\ngithub.approve(ms=60000)", desk=SERVERS)
    while "begun" not in a.names():
        pass
    house.ask(op="cancel", whom=wait.tag)()
    assert wait()["outcome"]["status"] == "CANCELLED"
    assert a.value("1 + 1") == 2
    a.close()


# -- sessions -----------------------------------------------------------------------------------

@pytest.fixture(params=["python", "javascript"])
def session(house, request):
    one = house.open(request.param)
    one.ask_tool = "github.echo(n=n)" if request.param == "python" else "await github.echo({ n })"
    yield one
    one.close()


def test_in_a_session_tools_come_and_go_with_the_runs(session):
    assert session.value("n = 1", desk=["github"]) in (None, 1)
    assert session.value(session.ask_tool, desk=["github"]) == echo("github:echo", n=1)
    assert session.run(session.ask_tool)["error"]["name"] in ("NameError", "ReferenceError")
    assert session.value(session.ask_tool, desk=["jira", "github"]) == echo("github:echo", n=1)
    session.run("github = 7", desk=["github"])
    assert session.value("github", desk=["github"]) == 7


def test_a_kept_object_has_no_tools_in_a_run_without(session):
    session.run("kept = github", desk=["github"])
    assert "this run has no tools" in session.run(session.ask_tool.replace("github", "kept").replace("n=n", "")
                                                  .replace("{ n }", ""))["error"]["message"]


def test_calls_that_a_run_leaves_reach_no_later_one(house):
    a = house.open("python")
    a.value("import threading, time\nlate = []\ndef work():\n"
            "    try: late.append(github.slow(ms=10, value='one'))\n"
            "    except MCPToolError as e: late.append(str(e))\n"
            "thread = threading.Thread(target=work); thread.start()\nwhile not github.echo(): pass", desk=["github"])
    assert a.value("[github.echo(i=i)['arguments']['i'] for i in range(50)]", desk=["github"]) == [*range(50)]
    assert a.value("thread.join(10)\nreturn late") in (["the run that called github:slow has ended"], ["one"])
    a.close()
    b = house.open("javascript")
    b.value("globalThis.late = []; github.slow({ ms: 10, value: 'one' }).then((x) => late.push(x)); 1", desk=["github"])
    code = "const all = []; for (let i = 0; i < 50; i++) all.push((await github.echo({ i })).arguments.i); return all"
    assert b.value(code, desk=["github"]) == [*range(50)]
    assert b.value("return late") == []
    b.close()


def test_a_run_that_waits_for_a_tool_can_be_interrupted(session):
    code = session.ask_tool.replace("echo", "never").replace("n=n", "").replace("{ n }", "")
    assert session.run(code, desk=["github"], policy={"timeout": "300ms"})["status"] == "TIMEOUT"
    assert session.value("1 + 1") == 2
    assert session.value(session.ask_tool.replace("n=n", "n=3").replace("{ n }", "{ n: 3 }"),
                         desk=["github"]) == echo("github:echo", n=3)


def test_a_branch_can_call(session):
    session.run(session.ask_tool.replace("n=n", "n=1").replace("{ n }", "{ n: 1 }"), desk=["github"])
    branch = session.branch()
    code = session.ask_tool.replace("n=n", "n=2").replace("{ n }", "{ n: 2 }")
    assert branch.value(code, desk=["github"]) == echo("github:echo", n=2)
    assert session.value(code, desk=["github"]) == echo("github:echo", n=2)
    branch.close()


def test_an_async_session_can_call_and_be_branched(house):
    a = house.open("python")
    assert a.value("(await github.echo(n=1))['tool']", desk=["github"]) == "github:echo"
    a.run("left = github.slow(ms=5000, value=1)\nimport asyncio\nawait asyncio.sleep(0)", desk=["github"])
    b = a.branch()
    assert b.value("import asyncio\nreturn await asyncio.gather(*[github.gate(n=3) for _ in range(3)])",
                   desk=["github"]) == [True] * 3
    assert b.value("left.cancelled()") is True
    a.close(), b.close()


def test_a_bash_session_can_call_in_each_run(house):
    a = house.open("bash")
    assert a.run("retort-tool github:echo")["exit_code"] == 127
    assert a.value("retort-tool github:echo n=1", desk=["github"]) == echo("github:echo", n=1)
    a.run("retort-tool github:slow ms=20 value=1 > /work/late 2>&1 &", desk=["github"])
    assert a.value("retort-tool github:echo n=2", desk=["github"]) == echo("github:echo", n=2)
    a.close()


# -- hostile code -------------------------------------------------------------------------------

HOSTILE = """
import json, os, socket, struct
s = socket.socket(fileno=os.dup(3))
def say(frame):
    data = frame if isinstance(frame, bytes) else json.dumps(frame, separators=(",", ":")).encode()
    s.sendall(struct.pack("=I", len(data)) + data)
def hear():
    size = struct.unpack("=I", s.recv(4, socket.MSG_WAITALL))[0]
    return json.loads(s.recv(size, socket.MSG_WAITALL))
def call(number, tool="github:echo", **more):
    say({"op": "call", "id": 1, "call": number, "tool": tool, "arguments": {}, **more})
"""


def test_frames_that_are_no_calls_are_passed_over(value):
    assert value("python", HOSTILE + """
for bad in (b'{"op":"call",', b'{"op":"call",}', b'{"op":"call","id":1}', b'{"op":"call","id":2,"call":1}',
            b'{"op":"call","id":1,"call":-1}', b'{"op":"call","id":1,"call":1e99}', b'{"op":"call",\\xff}',
            b'{"op":"call","id":"1","call":[]}'):
    say(bad)
call(5)
return hear()["call"]""") == 5


def test_a_call_without_a_tool_or_an_object_is_answered_with_an_error(value):
    assert value("python", HOSTILE + """
call(1, tool=""); call(2, tool="x" * 5000); call(3, arguments=[]); call(4, tool=None)
return [hear()["error"]["type"] for _ in range(4)]""") == ["MCPToolError"] * 4


def test_no_more_than_64_calls_are_under_way(value):
    assert value("python", HOSTILE + """
for i in range(70): call(i, tool="github:never")
call(3)                                        # a number that is taken: nobody's
answers = [hear() for _ in range(6)]
return [sorted(a["call"] for a in answers), {"too many" in a["error"]["message"] for a in answers}]""",
                 ) == [[64, 65, 66, 67, 68, 69], [True]]


def test_who_floods_and_does_not_listen_is_held_up_alone(fresh, value):
    outcome = fresh("python", HOSTILE + "\nwhile True: call(1, tool='github:never'); call(2, tool='')",
                    policy={"timeout": "500ms"})
    assert outcome["status"] == "TIMEOUT"
    assert value("python", "return github.echo()") == echo("github:echo")


def test_large_answers_that_nobody_reads_do_not_stop_output(fresh):
    outcome = fresh("javascript", """
        const all = Array.from({ length: 64 }, () => github.huge({ bytes: 60000 }));
        for (let i = 0; i < 200; i++) console.log('x'.repeat(4000));
        return (await Promise.all(all)).reduce((n, x) => n + x.length, 0)""", policy={"timeout": "20s", "output": "4M"})
    assert outcome["result"] == 64 * 59998
    assert len(outcome["stdout"]) == 200 * 4001


def test_an_answer_that_is_too_long_for_the_socket_ends_only_the_run(fresh):
    outcome = fresh("python", HOSTILE + "\nsay(b'{\"op\":\"call\",' + b'x' * 3_000_000)", policy={"output": "1M"})
    assert outcome["error"]["type"] == "ResourceLimitError"


def test_without_a_desk_there_is_no_way(fresh):
    assert fresh("python", "github", desk=None)["error"]["name"] == "NameError"
    assert fresh("javascript", "return [typeof mcp, typeof tools, typeof pii]", desk=None)["result"] == ["undefined"] * 3
    assert not fresh("python", HOSTILE + "\ncall(1)\nreturn hear()", desk=None)["success"]
    assert "this run has no tools" in fresh("bash", "/retort/bin/retort-tool github:echo", desk=None)["stderr"]


def test_a_process_that_the_code_forks_does_not_disturb(value):
    assert value("python", """
import os
r, w = os.pipe()
if os.fork() == 0:
    try: github.echo()
    except MCPToolError as e: os.write(w, str(e).encode())
    os._exit(0)
os.wait()
return [os.read(r, 200).decode(), github.echo()["tool"]]""") == [
        "tools can be called by the process that runs the code, not by a child of it", "github:echo"]
