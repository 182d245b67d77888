# SPDX-License-Identifier: Apache-2.0
"""What Python code sees and answers in a guest."""

import json
import os

import pytest

from harness import Guest, once


def value(code, **more):
    reply, ended = once("python", code, **more)
    assert reply["op"] == "result", reply
    assert ended.status == 0, ended
    return reply.get("value", "nothing")


def error(code, **more):
    reply, ended = once("python", code, **more)
    assert reply["op"] == "error", reply
    assert ended.status == 1
    return reply


@pytest.fixture
def session():
    guest = Guest("python")

    def run(code, **more):
        return guest.run(code, keep=True, **more)

    run.guest = guest
    yield run
    assert guest.finish().status == 0


# -- answers ------------------------------------------------------------------------------------

@pytest.mark.parametrize("code, expected", [
    ("return 1 + 1", 2),
    ("2 + 2", 4),
    ("x = 5\nx * 3", 15),
    ("result = 7", 7),
    ("result = 7\n8", 7),
    ("result = 7\nif True:\n    return 9\n8", 9),
    ("if False:\n    return 9\n8", 8),
    ("return None", None),
    ("result = None", None),
    ("result = 3\nreturn", 3),
    ("x = 1", "nothing"),
    ("print(1)", "nothing"),
    ("None", "nothing"),
    ("", "nothing"),
    ("# only a comment", "nothing"),
    ("'text'", "text"),
    ("def result():\n    pass", "nothing"),
    ("def f():\n    global result\n    result = 4\nf()", 4),
    ("exec('result = 6')", 6),
    ("for result in range(3): pass", 2),
    ("with open('/dev/null') as f:\n    return f.name", "/dev/null"),
    ("try:\n    return 1\nfinally:\n    x = 2", 1),
])
def test_the_answer_is_return_then_result_then_last_expression(code, expected):
    assert value(code) == expected


@pytest.mark.parametrize("code, expected", [
    ("import asyncio\nawait asyncio.sleep(0)\nreturn 5", 5),
    ("import asyncio\nx = await asyncio.sleep(0, 6)\nx", 6),
    ("async def g():\n    yield 1\n    yield 2\n[i async for i in g()]", [1, 2]),
    ("async def g():\n    yield 1\ntotal = 0\nasync for i in g():\n    total += i\nreturn total", 1),
    ("class C:\n    async def __aenter__(self): return 3\n    async def __aexit__(self, *a): pass\n"
     "async with C() as c:\n    return c", 3),
    ("async def main():\n    return 8\nmain()", 8),
    ("import asyncio\nasync def main():\n    return 8\nreturn asyncio.run(main())", 8),
])
def test_top_level_await(code, expected):
    assert value(code) == expected


def test_names_bound_beside_a_return_are_module_globals():
    code = """
import os.path, json as j
from math import *
from collections import OrderedDict as OD
n: int = 3
unset: str
a, (b, *c) = 1, (2, 3)
for i in range(2): pass
with open('/dev/null') as f: pass
try: 1/0
except ZeroDivisionError as e: message = str(e)
if (w := 5): pass
[z := y for y in range(4)]
gone = 1
del gone
match {'k': 1, 'm': 2}:
    case {'k': got, **rest}: pass
def g(): return n + floor(2.5)
class K:
    attribute: int = 1
async def h(): pass
exec('from_exec = 1')
names = sorted(k for k in globals() if not k.startswith('__'))
return {'same': locals() is globals(), 'g': g(), 'has': [k in names for k in (
    'os', 'j', 'floor', 'OD', 'n', 'a', 'b', 'c', 'i', 'f', 'message', 'w', 'z', 'got', 'rest',
    'g', 'K', 'h', 'from_exec')], 'not': [k in names for k in ('gone', 'e', 'y', 'unset')]}
"""
    answer = value(code)
    assert answer["same"] is True and answer["g"] == 5
    assert answer["has"] == [True] * 19 and answer["not"] == [False] * 4


def test_future_imports_work_beside_a_return():
    assert value("from __future__ import annotations\ndef f(x: Missing): return 1\nreturn f(2)") == 1


def test_main_is_a_real_module():
    code = """
import sys, pickle, dataclasses, inspect
@dataclasses.dataclass
class P:
    x: int
assert __name__ == '__main__' and sys.modules['__main__'].P is P and sys.argv == ['main.py']
def f():
    return 1
ours = [k for k in globals() if 'retort' in k]
return [pickle.loads(pickle.dumps(P(3))).x, inspect.getsource(f), ours]
"""
    assert value(code) == [3, "def f():\n    return 1\n", []]


# -- JSON ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("code, text", [
    ("2**200", str(2**200)),
    ("float('nan')", "null"),
    ("[float('inf'), 1.5]", "[null, 1.5]"),
    ("from decimal import Decimal\nDecimal('0.10000000000000000000000001')",
     "0.10000000000000000000000001"),
    ("from decimal import Decimal\n[Decimal('NaN'), Decimal('1E+5')]", "[null, 1E+5]"),
    ("from fractions import Fraction\nFraction(1, 3)", '"1/3"'),
    ("import datetime\ndatetime.datetime(2024, 5, 6, 7, 8)", '"2024-05-06T07:08:00"'),
    ("import datetime\n{datetime.date(2024, 5, 6): 1}", '{"2024-05-06": 1}'),
    ("import datetime\ndatetime.timedelta(minutes=2)", "120.0"),
    ("{3, 1, 2}", "[1, 2, 3]"),
    ("b'abc'", '{"base64": "YWJj"}'),
    ("(1, 2)", "[1, 2]"),
    ("{1: 'a', None: 'b', (1, 2): 'c'}", '{"1": "a", "null": "b", "(1, 2)": "c"}'),
    ("import enum\nclass E(enum.Enum):\n    A = 5\n[E.A]", "[5]"),
    ("import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\n    y: set\nP(1, {2})",
     '{"x": 1, "y": [2]}'),
    ("import pathlib\npathlib.Path('/a/b')", '"/a/b"'),
    ("object.__new__(type('Thing', (), {'__repr__': lambda s: 'THING'}))", '"THING"'),
    ("range(3)", "[0, 1, 2]"),
    ("{'a': 1}.keys()", '["a"]'),
    ("'\\ud800'", '"\\ud800"'),
    ("'\\u20ac'", '"\\u20ac"'),
    ("len(str(10**5000))", "5001"),
])
def test_values_become_json(code, text):
    guest = Guest("python")
    guest.order(code)
    raw = guest.raw_reply()
    guest.finish()
    assert '"value":' + text in raw


def test_foreign_arrays_become_json_without_their_library():
    code = """
class ndarray:
    def tolist(self): return [[1, 2]]
ndarray.__module__ = 'numpy'
class DataFrame:
    columns = ['a']
    def to_dict(self, how): return [{'a': 1}] if how == 'records' else None
DataFrame.__module__ = 'pandas.core.frame'
return [ndarray(), DataFrame()]
"""
    assert value(code) == [[[1, 2]], [{"a": 1}]]


@pytest.mark.parametrize("code", ["a = []\na.append(a)\na", "a = {}\na['x'] = [a]\nreturn a"])
def test_a_circular_answer_is_an_error(code):
    reply = error(code)
    assert reply["type"] == "RuntimeError" and "circular" in reply["message"]


def test_the_same_object_twice_is_not_circular():
    assert value("a = {1}\n[a, a]") == [[1], [1]]


def test_a_deep_answer_is_an_error():
    reply = error("a = []\nfor i in range(100000): a = [a]\na")
    assert reply["type"] == "RuntimeError" and "deep" in reply["message"]


def test_an_answer_too_large_for_a_frame_is_an_error():
    reply, _ = once("python", "'x' * (65 << 20)")
    assert reply["op"] == "error" and "out/" in reply["message"]


# -- input --------------------------------------------------------------------------------------

def test_inputs_are_variables_and_environment():
    code = """
import os, json
return [input_data is inputs, inputs['data'], data['a'] + data['b'], json.loads(os.environ['INPUT']),
        callable(print), '__name__' in inputs and __name__, 'class' in inputs]
"""
    sent = {"data": {"a": 10, "b": 20}, "print": 1, "__name__": "x", "class": 2, "1x": 3}
    assert value(code, input=sent) == [True, sent["data"], 30, sent, True, "__main__", True]


def test_input_absent_and_input_that_is_no_object():
    assert value("[input_data, inputs]") == [None, {}]
    assert value("[input_data, inputs]", input=[1, 2]) == [[1, 2], [1, 2]]
    assert value("[input_data, inputs]", input=None) == [None, None]


@pytest.mark.parametrize("kind, expected", [("json", {"n": [1, 2]}), ("text", '{"n": [1, 2]}')])
def test_input_from_a_memory_file(kind, expected):
    fd = os.memfd_create("input")
    os.write(fd, json.dumps({"n": [1, 2]}).encode())
    guest = Guest("python")
    guest.order("input_data", fds=[fd], input_fd={"index": 0, "type": kind})
    assert guest.reply()["value"] == expected
    guest.finish()
    os.close(fd)


def test_environment_is_the_runs_own():
    reply = value("import os\ndict(os.environ)", env={"TOKEN": "x"})
    assert reply == {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/work", "TMPDIR": "/tmp",
                     "LANG": "C.UTF-8", "TOKEN": "x", "OPENBLAS_NUM_THREADS": "1",
                     "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMEXPR_MAX_THREADS": "1"}


def test_a_large_input_is_not_in_the_environment():
    assert value("import os\n'INPUT' in os.environ", input="x" * 200_000) is False


def test_stdin_is_descriptor_0():
    guest = Guest("python")
    guest.order("import sys\nreturn [input(), sys.stdin.read()]")
    guest.process.stdin.write(b"one\ntwo\n")
    guest.process.stdin.close()
    assert guest.reply()["value"] == ["one", "two\n"]
    assert guest.finish().status == 0


# -- errors -------------------------------------------------------------------------------------

def test_a_syntax_error_has_line_column_and_text():
    reply = error("x = 1\ny = = 2\n")
    assert (reply["type"], reply["name"], reply["line"], reply["column"]) == (
        "SyntaxError", "SyntaxError", 2, 5)
    assert "y = = 2" in reply["stack"] and "main.py" in reply["stack"]


@pytest.mark.parametrize("code, line", [
    ("return 1\nyield 2", 2), ("x = 1\nclass A:\n    return 1", 3), ("break", 1),
    ("def f():\n  x = 1\n    y = 2", 3), ("a\0b", None), ("'\\ud800' + \ud800", None)])
def test_odd_sources_are_syntax_errors(code, line):
    reply = error(code)
    assert reply["type"] == "SyntaxError"
    assert line is None or reply["line"] == line


def test_an_error_has_the_users_line_and_stack():
    reply = error("import json\n\ndef f(x):\n    return json.loads(x)\n\nreturn f('{')")
    assert (reply["type"], reply["name"], reply["line"]) == ("RuntimeError", "JSONDecodeError", 4)
    assert reply["column"] == 12
    stack = reply["stack"]
    assert 'File "main.py", line 6, in <module>' in stack and "return f('{')" in stack
    assert 'File "json/__init__.py"' in stack
    assert "guest.py" not in stack and "/usr/lib" not in stack and "compiling" not in stack


@pytest.mark.parametrize("code, name, message", [
    ("1 / 0", "ZeroDivisionError", "division by zero"),
    ("None.x", "AttributeError", "'NoneType' object has no attribute 'x'"),
    ("undefined", "NameError", "name 'undefined' is not defined"),
    ("raise ValueError('Test error')", "ValueError", "Test error"),
    ("raise Exception", "Exception", ""),
    ("import nothing_like_it", "ModuleNotFoundError", "No module named 'nothing_like_it'"),
    ("import asyncio\nawait asyncio.wait_for(asyncio.sleep(9), 0.01)", "TimeoutError", ""),
    ("class E(BaseException): pass\nraise E('base')", "E", "base"),
    ("raise KeyboardInterrupt", "KeyboardInterrupt", ""),
])
def test_runtime_errors(code, name, message):
    reply = error(code)
    assert (reply["type"], reply["name"], reply["message"]) == ("RuntimeError", name, message)


def test_recursion_is_an_error_with_a_short_stack():
    reply = error("def f(): return f()\nf()")
    assert reply["name"] == "RecursionError" and reply["line"] == 1
    assert len(reply["stack"]) < 20_000


def test_memory_error():
    reply = error("x = 'a' * (1 << 60)")
    assert reply["type"] == "MemoryError" and reply["line"] == 1 and reply["message"]


def test_refused_and_missing_files_tell_errno_and_path():
    reply = error("raise PermissionError(13, 'Permission denied', '/etc/shadow')")
    assert (reply["type"], reply["errno"], reply["path"]) == ("PermissionError", 13, "/etc/shadow")
    reply = error("raise OSError(30, 'Read-only file system', '/usr/x')")
    assert (reply["type"], reply["errno"]) == ("PermissionError", 30)
    reply = error("open('/nowhere/at/all')")
    assert (reply["type"], reply["name"], reply["errno"], reply["path"]) == (
        "RuntimeError", "FileNotFoundError", 2, "/nowhere/at/all")


def test_causes_and_groups_are_in_the_stack():
    reply = error("try:\n    1/0\nexcept Exception as e:\n    raise ValueError('outer') from e")
    assert "ZeroDivisionError" in reply["stack"] and "direct cause" in reply["stack"]
    assert reply["line"] == 4
    reply = error("raise ExceptionGroup('many', [ValueError('one'), TypeError('two')])")
    assert "one" in reply["stack"] and "two" in reply["stack"]


@pytest.mark.parametrize("code", [
    "class E(Exception):\n    def __str__(self): raise SystemExit(9)\nraise E",
    "class E(Exception):\n    def __str__(self): 1/0\n    __repr__ = __str__\nraise E",
    "class E(Exception):\n    @property\n    def __traceback__(self): 1/0\nraise E",
    "class E(OSError):\n    errno = property(lambda s: 1/0)\nraise E",
    "class M(type):\n    def __instancecheck__(c, i): 1/0\nclass E(Exception, metaclass=M): pass\nraise E",
])
def test_hostile_exceptions_are_reported(code, session):
    assert session(code)["op"] == "error"
    assert session("1 + 1")["value"] == 2


def test_hostile_answers_are_reported(session):
    assert session("class R:\n    def __repr__(self): raise SystemExit\nR()")["value"] == "<R object>"
    assert session("class D(dict):\n    def items(self): raise KeyboardInterrupt\n"
                   "D(a={1})")["op"] in ("error", "result")
    assert session("1 + 1")["value"] == 2


def test_huge_messages_are_cut():
    reply = error("raise ValueError('x' * 1_000_000)")
    assert len(reply["message"]) < 20_000 and len(reply["stack"]) < 20_000


# -- ends ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("code, status, stderr", [
    ("import sys\nsys.exit(3)", 3, ""), ("exit()", 0, ""), ("raise SystemExit('bye')", 1, "bye\n"),
    ("import os\nos._exit(7)", 7, "")])
def test_an_exit_is_a_status_and_no_frame(code, status, stderr):
    reply, ended = once("python", "print('before')\nimport sys; sys.stdout.flush()\n" + code)
    assert reply is None and (ended.status, ended.stdout, ended.stderr) == (status, "before\n", stderr)


def test_threads_are_joined_and_atexit_runs_before_the_frame():
    code = """
import threading, time, atexit
atexit.register(print, 'atexit')
threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start()
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
return 1
"""
    reply, ended = once("python", code)
    assert reply["value"] == 1 and ended.stdout == "thread\natexit\n"


def test_output_streams_while_the_code_runs():
    guest = Guest("python")
    guest.order("print('first')\nimport time\ntime.sleep(1)\nprint('second')")
    assert guest.waits_for_stdout("first\n", seconds=0.9)
    guest.reply()
    assert guest.finish().stdout == "first\nsecond\n"


@pytest.mark.parametrize("code", [
    "import sys\nsys.stdout.close()\nsys.stderr = None", "import sys\nsys.stdout = None",
    "import sys\nclass S:\n    def flush(self): raise SystemExit\nsys.stdout = S()",
    "import sys\ndel sys.stdout, sys.stderr, sys.stdin"])
def test_broken_streams_break_nothing(code, session):
    assert session(code)["op"] == "result"
    assert session("print('still here')\n1")["value"] == 1
    assert session.guest.waits_for_stdout("still here\n")


def test_no_text_makes_print_fail():
    reply, ended = once("python", "print('\\ud800 \\u20ac')")
    assert reply["op"] == "result" and ended.stdout == "\\ud800 \u20ac\n"


def test_child_processes_write_to_our_output():
    reply, ended = once("python", "import subprocess\nsubprocess.run(['echo', 'hi']).returncode")
    assert reply["value"] == 0 and ended.stdout == "hi\n"


# -- sessions -----------------------------------------------------------------------------------

def test_a_session_keeps_everything(session):
    assert session("import math\nx = 5\ndef f(): return x")["op"] == "result"
    assert session("x += 1\nreturn f() + math.floor(1.5)")["value"] == 7
    assert session("1 / 0")["line"] == 1
    assert "value" not in session("y = 1")
    assert session("result = 9")["value"] == 9
    assert "value" not in session("y = 2"), "result was assigned in an earlier run"
    assert session("import sys\nsys.exit(2)")["name"] == "SystemExit"
    assert session("raise KeyboardInterrupt")["name"] == "KeyboardInterrupt"
    assert session("[x, y]")["value"] == [6, 2]


def test_a_session_keeps_its_event_loop(session):
    session("import asyncio\n"
            "async def start():\n    global task\n    task = asyncio.ensure_future(asyncio.sleep(0, 3))\n"
            "await start()")
    assert session("await task")["value"] == 3


def test_a_session_shows_the_source_each_function_came_from(session):
    session("def f():\n    raise ValueError('from the first')")
    reply = session("x = 1\nf()")
    assert reply["line"] == 2 and "raise ValueError('from the first')" in reply["stack"]


# -- allowed_imports ----------------------------------------------------------------------------

POLICY = ["math", "json", "datetime", "importlib", "xml.dom"]


@pytest.mark.parametrize("code, module, line", [
    ("import math\nimport os", "os", 2),
    ("def f():\n    from os.path import join", "os.path", 2),
    ("import xml.sax", "xml.sax", 1),
])
def test_an_import_outside_the_policy_is_refused_before_anything_runs(code, module, line):
    reply, ended = once("python", "print('ran')\n" + code, allowed_imports=POLICY)
    assert (reply["type"], reply["name"], reply["module"]) == ("PermissionError", "ImportError", module)
    assert reply["line"] == line + 1 and ended.stdout == ""
    assert reply["message"] == (
        "import of '%s' is not allowed by this policy; allowed: math, json, datetime, importlib, "
        "xml.dom; add it with allowed_imports" % module)


@pytest.mark.parametrize("code", [
    "__import__('os')", "import importlib\nimportlib.import_module('os')", "exec('import os')",
    "exec('import os', {})", "eval('__import__(\"os\")')"])
def test_an_import_at_run_time_is_refused_too(code):
    reply = error(code, allowed_imports=POLICY)
    assert (reply["type"], reply["module"]) == ("PermissionError", "os")
    assert reply["line"] >= 1


@pytest.mark.parametrize("code", [
    "import math\nreturn 1", "import json, datetime\nreturn 1", "import xml.dom.minidom\nreturn 1",
    "import datetime\ndatetime.datetime.strptime('2024', '%Y')\nreturn 1"])
def test_allowed_modules_import_what_they_like(code):
    assert value(code, allowed_imports=POLICY) == 1


def test_figures_come_back_as_pictures(session):
    """With a stand-in: matplotlib need not be installed to see that its figures are asked for."""
    code = """
import sys, types
plt = types.ModuleType('matplotlib.pyplot')
class Figure:
    def savefig(self, path): open(path, 'w').write('png')
plt.open = [1, 2]
plt.get_fignums = lambda: plt.open
plt.figure = lambda n: Figure()
plt.close = lambda what: plt.open.clear()
sys.modules['matplotlib.pyplot'] = plt
import os
os.chdir('/')
"""
    assert session(code)["op"] == "result"
    assert sorted(os.listdir(session.guest.workdir / "out")) == ["figure-1.png", "figure-2.png"]
    session("plt.open.append(3)")
    assert "figure-3.png" in os.listdir(session.guest.workdir / "out")


def test_limits_are_laid_on_once(session):
    limits = {"cpu_seconds": 30, "descriptors": 64}
    code = "import resource\nresource.getrlimit(resource.RLIMIT_NOFILE)[0]"
    assert session(code, limits=limits)["value"] == 64
    assert session(code, limits={"descriptors": 32})["value"] == 64


def test_modules_beside_the_script_can_be_imported():
    guest = Guest("python")
    (guest.workdir / "answers.py").write_text("forty_two = 42\n")
    (guest.workdir / "helper.py").write_text("def f():\n    1/0\n")
    reply = guest.run("import helper\nhelper.f()")
    assert 'File "helper.py", line 2' in reply["stack"] and reply["line"] == 2
    guest.finish()


def test_raw_and_buffered_output_both_arrive():
    reply, ended = once("python", "import os\nos.write(1, b'raw')\nprint('x', end='')\n3")
    assert reply["value"] == 3 and ended.stdout == "rawx"
