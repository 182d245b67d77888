# SPDX-License-Identifier: Apache-2.0
"""Tools, called from the user's code: frames out, answers back to whom they belong.

    desk = Desk(control, port)
    desk.begin(order)                        # each run; `order` may grant tools
    desk.objects(["github"])                 # {"github": ..., "tools": ..., "mcp": ..., ...}
    desk.end()                               # the run is over, and with it its calls

Any attribute of a server's object is a tool; the daemon knows which there are. In plain code a call
returns the value. Where an event loop runs it returns a Call, which can be awaited or gathered, and
which takes the place of its value when it is used without.

Any thread may call. Who waits and finds nobody reading reads for all; so does an event loop when
something has come, and so does the guest when it waits for its next order.

What must stay true: an answer of an earlier run reaches nobody; no more than CALLS_MAX calls are
under way, the others wait here; whoever stops reading wakes one who waits, to read on. The usual
call, with nobody else about, is to cost little beside the two frames: it takes two locks and no
condition.
"""

import asyncio
import collections
import datetime
import json
import mmap
import operator
import os
import re
import threading
import weakref

import answers
import dates

CALLS_MAX = 64  # at a time; the daemon refuses more
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_SERVER = re.compile(r"[A-Za-z0-9._-]{1,100}")
_FORBIDDEN = re.compile("__proto__|constructor|prototype|__(?:define|lookup)(?:Getter|Setter)__")
_running_loop = asyncio._get_running_loop
_decode = json.JSONDecoder().raw_decode


class MCPToolError(Exception):
    """A tool did not do what was asked; `original_message` is what it said itself."""

    def __init__(self, message, tool_name=None, original_message=None, type="MCPToolError"):
        super().__init__(message)
        self.message = message
        self.type = type
        self.tool_name = tool_name
        self.original_message = message if original_message is None else original_message
        self.timestamp = datetime.datetime.now(datetime.timezone.utc).isoformat()


MCPToolError.__module__ = "builtins"  # so that a stack shows the name alone


class Slot:
    """Where the answer to one call will be."""

    __slots__ = "tool", "value", "error", "is_done", "future", "bell"

    def __init__(self, tool):
        self.tool = tool
        self.value = self.error = self.future = self.bell = None
        self.is_done = False

    def settle(self, message, fds):
        error = message.get("error")
        try:
            if error is not None:
                self.error = MCPToolError(error.get("message", ""), error.get("tool") or self.tool,
                                          error.get("original"), error.get("type"))
            elif "value_fd" in message:
                self.value = read_json(fds[message["value_fd"]])
            else:
                self.value = message.get("value")
        except Exception as exc:  # no memory for it, say
            self.error = exc
        self.finish()

    def finish(self):
        self.is_done = True
        if self.bell is not None:
            self.bell.set()
        if self.future is not None:
            self.future.notice()

    def result(self):
        if self.error is not None:
            raise self.error
        return self.value


def read_json(fd):
    """From the memory it came in, without another copy of the bytes."""
    size = os.fstat(fd).st_size
    with mmap.mmap(fd, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ) as memory:
        with memoryview(memory) as view:
            return json.loads(str(view, "utf-8"))


class Call(asyncio.Future):
    """A call under way, in code with an event loop: to be awaited. Used without, it waits and
    stands for its value."""

    def __init__(self, desk, slot, loop):
        super().__init__(loop=loop)
        self._desk, self._slot = desk, slot
        slot.future = self

    def notice(self):
        """The answer is there; whoever read it may be another thread than the loop's."""
        loop = self.get_loop()
        if _running_loop() is loop:
            self._settle()
        elif not loop.is_closed():
            loop.call_soon_threadsafe(self._settle)

    def _settle(self):
        if self.done():
            return
        if self._slot.error is not None:
            self.set_exception(self._slot.error)
        else:
            self.set_result(self._slot.value)

    def _retort_value(self):
        self._desk.wait(self._slot)
        if self.done() and not self.cancelled():
            self.exception()  # asked for: nobody needs to be told that it was not
        return self._slot.result()

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._retort_value(), name)

    def __eq__(self, other):
        return self is other or (not isinstance(other, Call) and self._retort_value() == other)

    __hash__ = object.__hash__

    def __iter__(self):
        return iter(self._retort_value())

    def __bool__(self):
        return bool(self._retort_value())

    def __str__(self):
        return str(self._retort_value())

    def __format__(self, how):
        return format(self._retort_value(), how)

    def __int__(self):
        return int(self._retort_value())

    def __float__(self):
        return float(self._retort_value())

    def __len__(self):
        return len(self._retort_value())


def _stand_for(name):
    act = getattr(operator, name)

    def stand_in(self, *others):
        return act(self._retort_value(), *others)
    return stand_in


def _stand_behind(name):
    act = getattr(operator, name)

    def stand_in(self, other):
        return act(other, self._retort_value())
    return stand_in


for _name in ("getitem", "contains", "lt", "le", "gt", "ge", "add", "sub", "mul", "truediv",
              "floordiv", "mod", "neg", "index"):
    setattr(Call, "__%s__" % _name, _stand_for(_name))
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod"):
    setattr(Call, "__r%s__" % _name, _stand_behind(_name))


class Orders(collections.deque):
    """What came that is no answer: for the guest."""

    bell = None

    @property
    def is_done(self):
        return bool(self)


class Desk:
    def __init__(self, control, port):
        self.control, self.port = control, port
        self.run = None  # the one whose calls count
        self.is_child = False  # what the code forks shares our socket, and must not use it
        self.argument_max = 0
        self.last = 0
        self.lock = threading.Lock()  # over what follows, and over sending
        self.waiting = {}  # slots by the numbers of their calls
        self.under_way = 0
        self.backlog = collections.deque()
        self.reading = threading.Lock()  # held by who reads
        self.sleepers = {}  # places that are waited for meanwhile
        self.orders = Orders()
        self.loops = weakref.WeakSet()  # that tell us when something has come
        self.servers = {}
        os.register_at_fork(after_in_child=self._be_child)

    # -- runs -----------------------------------------------------------------------------------

    def begin(self, order):
        if self.waiting:
            self.end()  # the last run was interrupted before it could
        self.run = order.get("id") if "tools" in order else None
        self.is_child = False
        self.argument_max = order.get("argument_bytes") or 0

    def end(self):
        """The daemon has dropped what is under way; so nobody waits for it here."""
        with self.lock:
            left, self.waiting = self.waiting, {}
            self.run, self.under_way = None, 0
            self.backlog.clear()
        for slot in left.values():
            slot.error = MCPToolError("the run that called %s has ended" % slot.tool, slot.tool)
            future, slot.future = slot.future, None
            slot.finish()
            if future is not None and not future.get_loop().is_closed():
                future.cancel()
        for loop in [*self.loops]:
            if not loop.is_closed():
                loop.remove_reader(self.control)
        self.loops.clear()

    def _be_child(self):
        self.is_child = True

    def objects(self, servers):
        """What the code finds under which name."""
        self.servers = {name: self.servers.get(name) or Server(self, name) for name in servers
                        if _SERVER.fullmatch(name)}
        found = {variable_of(name): server for name, server in self.servers.items()}
        return {**found, "mcp": Servers(self), "tools": Tools(self), "pii": Pii(self),
                "MCPToolError": MCPToolError, **dates.HELPERS}

    # -- calls ----------------------------------------------------------------------------------

    def call(self, tool, arguments):
        slot = Slot(tool)
        loop = _running_loop()
        call = None if loop is None else Call(self, slot, loop)
        self._start(slot, arguments)
        if call is None:
            self.wait(slot)
            return slot.result()
        if loop not in self.loops:
            loop.add_reader(self.control, self._readable)
            self.loops.add(loop)
        return call

    def _start(self, slot, arguments):
        text = self._encode(slot.tool, arguments)
        with self.lock:
            if self.run is None or self.is_child:
                why = ("this run has no tools" if self.run is None else
                       "tools can be called by the process that runs the code, not by a child of it")
                raise MCPToolError(why, slot.tool)
            self.last += 1
            self.waiting[self.last] = slot
            frame = ('{"op":"call","id":%d,"call":%d,"tool":"%s","arguments":%s}' % (
                self.run, self.last, slot.tool, text)).encode()
            if self.under_way < CALLS_MAX:
                self.under_way += 1
                self.port.send(self.control, frame)
            else:
                self.backlog.append(frame)

    def _encode(self, tool, arguments):
        try:
            text = answers.to_json(arguments)
        except answers.NoAnswer:
            raise TypeError("the arguments of %s cannot be JSON" % tool) from None
        if len(text) > self.argument_max > 0:
            raise MCPToolError("the arguments of %s have %d bytes and at most %d fit"
                               % (tool, len(text), self.argument_max), tool)
        return text

    # -- answers --------------------------------------------------------------------------------

    def next_order(self):
        self.wait(self.orders)
        return self.orders.popleft()

    def wait(self, place):
        """Until it is done; reads for everybody when nobody else does."""
        while not place.is_done:
            if not self.reading.acquire(False):
                self._sleep(place)
                continue
            try:
                while not place.is_done or self.port.more():  # of what was read along, no loop is told
                    self._take(self.port.recv(self.control))
            finally:
                self.reading.release()
                if self.sleepers:
                    self._hand_on()

    def _sleep(self, place):
        """Until it is done, or until we should read ourselves. Who stops reading looks for sleepers
        after that; we see that somebody reads after we are one of them."""
        place.bell = threading.Event()
        self.sleepers[id(place)] = place
        try:
            if not place.is_done and self.reading.locked():
                place.bell.wait()
        except BaseException:
            del self.sleepers[id(place)]
            self._hand_on()  # it may have been us who was to read on
            raise
        del self.sleepers[id(place)]

    def _hand_on(self):
        for place in [*self.sleepers.values()]:
            if not place.is_done:
                place.bell.set()
                return

    def _readable(self):
        """An event loop says so; but another thread may have been quicker."""
        if not self.reading.acquire(False):
            return
        try:
            is_there = self.port.ready(self.control)
            while is_there:
                self._take(self.port.recv(self.control))
                is_there = self.port.more()
        finally:
            self.reading.release()
            if self.sleepers:
                self._hand_on()

    def _take(self, frame):
        if frame is None:
            os._exit(0)
        data, fds = frame
        message = _decode(data)[0]
        if message["op"] == "answer":
            self._take_answer(message, fds)
            return
        self.orders.append((message, fds))
        if self.orders.bell is not None:
            self.orders.bell.set()

    def _take_answer(self, message, fds):
        try:
            with self.lock:
                if message["id"] != self.run:
                    return
                slot = self.waiting.pop(message["call"], None)
                if self.backlog:
                    self.port.send(self.control, self.backlog.popleft())
                else:
                    self.under_way -= 1
            if slot is not None:
                slot.settle(message, fds)
        finally:
            for fd in fds:
                os.close(fd)


# -- what the code sees -------------------------------------------------------------------------

def variable_of(server):
    name = re.sub(r"[^A-Za-z0-9_]", "_", server)
    return "_" + name if name[:1].isdigit() else name


def is_tool_name(name):
    return bool(_NAME.fullmatch(name)) and not _FORBIDDEN.search(name)


def check_name(name):
    """"server:tool", or a tool alone; which there are, the daemon knows."""
    server, _, tool = name.rpartition(":") if isinstance(name, str) else ("", "", "")
    if not is_tool_name(tool) or (server and not _SERVER.fullmatch(server)):
        raise MCPToolError("%.120r is not the name of a tool; one is \"server:tool\", each of letters, "
                           "digits, _ and -" % (name,), str(name)[:200])
    return name


class Tool:
    __slots__ = "_desk", "_name"

    def __init__(self, desk, name):
        self._desk, self._name = desk, name

    def __call__(self, arguments=None, /, **named):
        if arguments is not None and not isinstance(arguments, dict):
            raise TypeError("%s() takes its arguments by name, or as one dict"
                            % self._name.replace(":", "."))
        return self._desk.call(self._name, {**arguments, **named} if arguments else named)

    def __repr__(self):
        return "<tool %s>" % self._name


class Server:
    def __init__(self, desk, name):
        self.__dict__.update(_desk=desk, _name=name)

    def __getattr__(self, name):
        if name.startswith("__") or not is_tool_name(name):
            raise AttributeError("%r is not the name of a tool of %s" % (name[:100], self._name))
        tool = self.__dict__[name] = Tool(self._desk, "%s:%s" % (self._name, name))
        return tool

    def __getitem__(self, name):
        return Tool(self._desk, "%s:%s" % (self._name, check_name(name)))

    def __repr__(self):
        return "<tools of %s>" % self._name


class Servers:
    """mcp.github, mcp["my-server"]."""

    def __init__(self, desk):
        self._desk = desk

    def _find(self, name):
        servers = self._desk.servers
        return servers.get(name) or next((s for n, s in servers.items() if variable_of(n) == name),
                                         None)

    def _unknown(self, name):
        return "there is no server %.100r; there are: %s" % (name, ", ".join(self._desk.servers)
                                                             or "none")

    def __getattr__(self, name):
        found = None if name.startswith("__") else self._find(name)
        if found is None:
            raise AttributeError(self._unknown(name))
        return found

    def __getitem__(self, name):
        found = self._find(name)
        if found is None:
            raise KeyError(self._unknown(name))
        return found

    def __iter__(self):
        return iter(self._desk.servers)

    def __dir__(self):
        return [variable_of(name) for name in self._desk.servers]

    def __repr__(self):
        return "<servers %s>" % ", ".join(self._desk.servers)


class Tools:
    def __init__(self, desk):
        self._desk = desk

    def call(self, name, arguments=None, /, **named):
        return Tool(self._desk, check_name(name))(arguments, **named)

    def search(self, query, limit=5):
        return self._desk.call("tools:search", {"query": query, "limit": limit})

    def describe(self, name):
        return self._desk.call("tools:describe", {"name": name})

    def list(self):
        return self._desk.call("tools:list", {})


class Pii:
    """What is personal in a value: how much, and of which kinds."""

    def __init__(self, desk):
        self._desk = desk

    def count(self, value):
        return self._desk.call("pii:count", {"value": value})

    def types(self, value):
        return self._desk.call("pii:types", {"value": value})
