# SPDX-License-Identifier: Apache-2.0
"""Runs the user's Python inside a cell: frames in, answers out.

    Guest(control_fd, retort_guest).serve()

An order becomes a fresh `__main__` module with its inputs as variables; the script runs in it; what
it answers (see compiling.py, answers.py) or how it failed (faults.py) goes back in one frame. With
"keep" the module stays and so does everything in it; without, the process ends as Python would end:
threads are joined, atexit handlers run, output is flushed, and then the answer is sent.

What must stay true: whatever user code does short of killing the process, each order gets its one
frame or an exit status.
"""

import asyncio
import atexit
import builtins
import contextlib
import inspect
import io
import json
import keyword
import os
import signal
import sys
import threading
import types

import answers
import branching
import compiling
import desk
import faults
import imports
import preludes

FRAME_MAX = 64 << 20
SOURCES_MAX = 500  # of a session's runs, whose lines can still be shown
ENV_INPUT_MAX = 100 * 1024  # beyond it one variable no longer fits exec()
BASE_ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/work", "TMPDIR": "/tmp",
            "LANG": "C.UTF-8",
            # A pool of threads in every cell costs more than it gives, and a session that has one
            # cannot be branched.
            "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
            "NUMEXPR_MAX_THREADS": "1"}
LIMITS = ("cpu_seconds", "data_bytes", "file_bytes", "processes", "descriptors")
REHEARSAL = "import math\nx = [1]\nfor i in x:\n    print(end='')\nprint(end='')\nlen(x)"
_NOTHING = object()
_NO_RESULTS = (types.FunctionType, types.ModuleType, type)  # `def result():` is no answer


class Guest:
    def __init__(self, control, port, workdir):
        """Made in the zygote: nothing here depends on the cell, and what is written there once is
        not written in every child."""
        self.control = control
        self.port = port  # retort_guest, or a stand-in with recv, send and limit
        self.has_begun = False
        self.unanswered = None  # the run that an interrupt is for
        self.answer_max = FRAME_MAX
        self.loop = None
        self.desk = desk.Desk(control, port)
        self.placed = {}  # what we have put in the module for the code to call
        self.workdir = workdir
        self.filenames = []  # the user's scripts, the latest first
        self.numbers = {}  # of runs, by the name of the script
        self.prelude_name = None  # of the module that was loaded before the code
        os.environ.clear()
        os.environ.update(BASE_ENV)
        sys.path.insert(0, workdir)
        self.module = types.ModuleType("__main__")
        self.module.__dict__["__builtins__"] = builtins
        sys.modules["__main__"] = self.module
        open_streams()

    def rehearse(self):
        """Goes through the motions of a run. A forked process copies each page it first writes to;
        what is copied here, while the cell waits in the pool, no request waits for."""
        order = json.loads(json.dumps({"op": "run", "id": 0, "name": "main.py", "code": REHEARSAL,
                                       "env": {}, "limits": {}, "tools": ["demo"],
                                       "argument_bytes": 1, "keep": False}).encode())
        scope = dict(self.module.__dict__)
        self._prepare(order, self._input_of(order, []))
        reply, _ = self._run(order, False)
        encode_reply({"id": 0, **reply}).encode()
        self._take_leave()
        self.desk.end()
        self.desk.servers.clear()
        self.placed.clear()
        self.filenames.clear()
        self.numbers.clear()
        self.module.__dict__.clear()
        self.module.__dict__.update(scope)

    def serve(self):
        while True:
            try:
                order, fds = self._next_order()
                if order["op"] == "branch":
                    self._branch(order)
                else:
                    self.handle(order, fds)
            except KeyboardInterrupt as exc:  # it came while the answer was on its way
                if self.unanswered is not None:
                    self._reply(self.unanswered, {"op": "error", **faults.describe(exc, [])})

    def _next_order(self):
        if self.has_begun:
            return self.desk.next_order()  # a thread of the last run may be reading
        frame = self.port.recv(self.control)
        if frame is None:
            os._exit(0)
        return json.loads(frame[0]), frame[1]

    def handle(self, order, fds):
        keep = bool(order.get("keep"))
        try:
            value = self._input_of(order, fds)
            if not self.has_begun:
                self._begin(order)
            if keep:
                self._keep(order)
            self._prepare(order, value)
            reply, status = self._run(order, keep)
        except BaseException as exc:  # a limit that cannot be laid on, an interrupt between runs
            reply, status = {"op": "error", **faults.describe(exc, self.filenames)}, 1
        if keep:
            self._flush()
            self.desk.end()
            self._reply(order.get("id"), reply)
        else:
            reply["id"] = order.get("id")
            self._end(reply, status)

    # -- sessions -------------------------------------------------------------------------------

    def _keep(self, order):
        """What the last run made of SIGINT ends with it; between runs the signal does nothing."""
        self.answer_max = min(FRAME_MAX, order.get("answer_bytes") or FRAME_MAX)
        signal.signal(signal.SIGINT, self._interrupt)
        self.unanswered = order.get("id")

    def _interrupt(self, *_):
        if self.unanswered is not None:
            raise KeyboardInterrupt("the run was interrupted")

    def _branch(self, order):
        """Says whether we can be copied, and waits for it; what comes back may be the copy."""
        self._flush()
        found = branching.obstacles(self.loop)
        if found:
            self._send({"op": "error", "id": order.get("id"), "message": found})
            return
        place = branching.remember()
        self._send({"op": "ready", "id": order.get("id")})
        if self.port.park(self.control):
            branching.arrive(place, self.loop)

    def _reply(self, number, reply):
        reply["id"] = number
        self._send(reply)
        self.unanswered = None

    # -- before the code runs -------------------------------------------------------------------

    def _begin(self, order):
        self.has_begun = True
        limits = order.get("limits") or {}
        self.port.limit(*(int(limits.get(name) or 0) for name in LIMITS))

    def _prepare(self, order, value):
        name = order.get("name") or "main.py"
        for key, text in (order.get("env") or {}).items():
            os.environ[key] = text
        sys.argv = [name]
        self.module.__file__ = name
        restore_streams()
        scope = self.module.__dict__
        if "tools" in order or self.placed:
            self._place_tools(order, scope)
        if value is _NOTHING:
            scope.setdefault("input_data", None)
            scope.setdefault("inputs", {})
            return
        text = json.dumps(value)
        os.environ.pop("INPUT", None)
        if len(text) < ENV_INPUT_MAX:
            os.environ["INPUT"] = text
        if isinstance(value, dict):
            scope.update((k, v) for k, v in value.items() if is_variable(k))
        scope["input_data"] = scope["inputs"] = value

    def _place_tools(self, order, scope):
        """Under names that the code has not taken itself."""
        self.desk.begin(order)
        for name, ours in self.placed.items():
            if scope.get(name) is ours:
                del scope[name]
        found = self.desk.objects(order["tools"]) if "tools" in order else {}
        self.placed = {name: thing for name, thing in found.items()
                       if is_variable(name) and name not in scope}
        scope.update(self.placed)

    @staticmethod
    def _input_of(order, fds):
        value, where = order.get("input", _NOTHING), order.get("input_fd")
        try:
            if "stdin_fd" in order:
                os.dup2(fds[order["stdin_fd"]], 0)
                open_stdin()
            if where is not None:
                with open(os.dup(fds[where["index"]]), "rb") as file:
                    file.seek(0)
                    data = file.read()
                if where.get("type") == "text":
                    value = data.decode("utf-8", "replace")
                else:
                    value = json.loads(data)
        finally:
            for fd in fds:
                os.close(fd)
        return value

    def _filename(self, name, keep):
        """In a session every run's source stays known, so a second main.py gets a number."""
        count = self.numbers[name] = self.numbers.get(name, 0) + 1
        filename = "%s[%d]" % (name, count) if keep and count > 1 else name
        self.filenames.insert(0, filename)
        for old in self.filenames[SOURCES_MAX:]:
            faults.forget_source(old)
        del self.filenames[SOURCES_MAX:]
        return filename

    # -- the run --------------------------------------------------------------------------------

    def _run(self, order, keep):
        source = order.get("code") or ""
        filename = self._filename(order.get("name") or "main.py", keep)
        faults.remember_source(filename, source)
        prelude = order.get("prelude")
        if prelude:
            self.prelude_name = prelude["name"]
        if self.prelude_name:
            self.filenames.insert(0, self.prelude_name)
        allowed = order.get("allowed_imports")
        if allowed is not None and prelude:
            allowed = [*allowed, prelude["name"].rpartition(".")[0]]
        guard = imports.Guard(allowed) if allowed is not None else None
        try:
            script = compiling.compile_script(source, filename, guard and guard.check_tree)
        except BaseException as exc:
            return {"op": "error", **faults.describe_syntax(exc)}, 1
        try:
            with guard or contextlib.nullcontext():
                if prelude:
                    preludes.load(prelude)
                value = self._execute(script, keep)
            reply = {"op": "result"}
            if value is not _NOTHING:
                reply["value"] = Json(answers.to_json(value))
            return reply, 0
        except SystemExit as exc:
            if not keep:
                return {}, exit_status(exc)
            return {"op": "error", **faults.describe(exc, self.filenames)}, 1
        except answers.NoAnswer as exc:
            return {"op": "error", "type": "RuntimeError", "name": "ValueError",
                    "message": str(exc)}, 1
        except BaseException as exc:
            error = faults.describe(exc, self.filenames)
            exc.__traceback__ = None  # lets go of what the frames hold, which may be all memory
            return {"op": "error", **error}, 1
        finally:
            save_figures(self.workdir)

    def _execute(self, script, keep):
        scope = self.module.__dict__
        before = scope.get("result", _NOTHING)
        if script.stars:
            scope[compiling.STAR] = lambda index: exec(script.stars[index], scope)
        try:
            returned = eval(script.code, scope)
            if script.is_async:
                returned = self._await(returned, keep)
            value = self._answer(script, scope, returned, before)
            return self._await(value, keep) if inspect.iscoroutine(value) else value
        finally:
            scope.pop(compiling.STAR, None)
            scope.pop(compiling.ANSWER, None)

    @staticmethod
    def _answer(script, scope, returned, before):
        if script.is_plain:
            return _NOTHING if returned is None else returned
        last = scope.get(compiling.ANSWER)
        if returned is not None:
            return returned[0]
        after = scope.get("result", _NOTHING)
        is_assigned = after is not before or script.assigns_result
        if is_assigned and after is not _NOTHING and not isinstance(after, _NO_RESULTS):
            return after
        return _NOTHING if last is None else last

    def _await(self, coroutine, keep):
        if not keep:
            return asyncio.run(coroutine)
        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        return self.loop.run_until_complete(coroutine)

    # -- after it -------------------------------------------------------------------------------

    def _send(self, reply):
        text = encode_reply(reply)
        if len(text) > self.answer_max:
            text = encode_reply({
                "op": "error", "id": reply.get("id"), "type": "RuntimeError", "name": "ValueError",
                "message": "the answer has %d bytes and at most %d fit; write it to a file in out/"
                           % (len(text), self.answer_max)})
        self.port.send(self.control, text.encode())

    def _take_leave(self):
        """As the interpreter ends: threads, atexit, output."""
        steps = [self._flush]
        if atexit._ncallbacks():
            steps.insert(0, atexit._run_exitfuncs)
        if threading.active_count() > 1:
            steps.insert(0, threading._shutdown)
        for step in steps:
            try:
                step()
            except BaseException:
                pass

    def _end(self, reply, status):
        """The answer is the last act; an exit status needs no frame."""
        self._take_leave()
        try:
            if "op" in reply:
                self._send(reply)
                self.port.leave(self.control, status)
        finally:
            os._exit(status)

    @staticmethod
    def _flush():
        for stream in (getattr(sys, "stdout", None), getattr(sys, "stderr", None), *_streams):
            try:
                stream.flush()
            except BaseException:
                pass  # closed, or replaced by something that is no file


class Json(str):
    """Text that is JSON already."""


def encode_reply(reply):
    parts = ("%s:%s" % (json.dumps(key), value if type(value) is Json else json.dumps(value))
             for key, value in reply.items() if value is not None)
    return "{%s}" % ",".join(parts)


def is_variable(key):
    return (key.isidentifier() and not keyword.iskeyword(key) and not hasattr(builtins, key)
            and not (key.startswith("__") and key.endswith("__")))


def exit_status(exc):
    if exc.code is None:
        return 0
    if isinstance(exc.code, int):
        return int(exc.code) & 0xFF
    try:
        print(exc.code, file=sys.stderr)
    except BaseException:
        pass
    return 1


_streams = []  # input, output, errors


def open_streams():
    """Text streams out line by line, and no character, however broken, makes print() fail."""
    _streams[:] = [
        None,
        *(io.TextIOWrapper(io.BufferedWriter(io.FileIO(fd, "w", closefd=False)), encoding="utf-8",
                           errors="backslashreplace", line_buffering=True) for fd in (1, 2))]
    open_stdin()
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__ = _streams


def open_stdin():
    _streams[0] = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, "r", closefd=False)),
                                   encoding="utf-8", errors="surrogateescape")


def restore_streams():
    """The last run may have closed or replaced them."""
    if any(stream.closed for stream in _streams):
        open_streams()
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__ = _streams


def save_figures(workdir):
    """What matplotlib has open comes back as pictures, in the order they were made."""
    plot = sys.modules.get("matplotlib.pyplot")
    if plot is None:
        return
    try:
        folder, number = os.path.join(workdir, "out"), 1
        for figure in plot.get_fignums():
            while os.path.exists(os.path.join(folder, "figure-%d.png" % number)):
                number += 1
            plot.figure(figure).savefig(os.path.join(folder, "figure-%d.png" % number))
        plot.close("all")
    except BaseException as exc:
        print("a figure could not be saved: %s" % faults.text_of(exc), file=sys.stderr)
