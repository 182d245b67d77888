# SPDX-License-Identifier: Apache-2.0
"""An MCP server over stdio, legacy or modern, that misbehaves on demand: one tool per misdeed.

    rogue.py [--modern] [--probe=error|silent|die] [--mute] [--die-at-start] [--stay] [--list=KIND]

Written against the standard library, so that every byte it sends is under control.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

OPTIONS = set(sys.argv[1:])
OUT = os.fdopen(os.dup(1), "wb", buffering=0)
LOCK = threading.Lock()
CANCELLED = []
STATE = {"extra": False, "answers": [], "calls": 0}
MODERN = "2026-07-28"


def option(name, default=""):
    return next((o.split("=", 1)[1] for o in OPTIONS if o.startswith(f"--{name}=")), default)


def raw(data):
    with LOCK:
        while data:
            data = data[OUT.write(data):]


def send(message):
    raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def answer(id, result):
    if "--modern" in OPTIONS:
        result.setdefault("resultType", "complete")
    send({"id": id, "result": result})


def text(id, words, **more):
    answer(id, {"content": [{"type": "text", "text": words}], **more})


# ---- tools ----

def echo(id, args, meta):
    answer(id, {"content": [{"type": "text", "text": json.dumps(args)}], "structuredContent": args})


def say(id, args, meta):
    answer(id, {"content": args["content"], **args.get("more", {})})


def sleep(id, args, meta):
    time.sleep(args["s"])
    text(id, "slept")


def never(id, args, meta):
    pass


def die(id, args, meta):
    print("giving up\nTraceback: it was \x1b[31mtoo much\x1b[0m", file=sys.stderr, flush=True)
    os._exit(3)


def kill(id, args, meta):
    os.kill(os.getpid(), signal.SIGKILL)


def big(id, args, meta):
    text(id, "x" * args["bytes"])


def big_structured(id, args, meta):
    rows = [{"n": i, "words": "lorem ipsum"} for i in range(args["rows"])]
    answer(id, {"content": [], "structuredContent": {"rows": rows}})


def huge_line(id, args, meta):
    try:
        while True:
            raw(b"x" * (1 << 20))
    except BrokenPipeError:
        pass


def flood(id, args, meta):
    line = json.dumps({"jsonrpc": "2.0", "method": "notifications/message",
                       "params": {"level": "info", "data": "flood"}}).encode() + b"\n"
    try:
        while True:
            raw(line * 1000)
    except BrokenPipeError:
        pass


def flood_errors(id, args, meta):
    for _ in range(args["mb"]):
        os.write(2, b"e" * (1 << 20))
    text(id, "still here")


def garbage(id, args, meta):
    raw(b"this is a log line\n{\"jsonrpc\":\n[]\n{}\nnull\n\x00\xff\n")
    text(id, "after garbage")


def invalid_utf8(id, args, meta):
    raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\xff\xfe"}]}}\n' % id)


def broken_result(id, args, meta):
    raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[}}\n' % id)


def no_object(id, args, meta):
    send({"id": id, "result": [1, 2]})


def wrong_ids(id, args, meta):
    for wrong in (id + 1000, str(id), -1, "x"):
        send({"id": wrong, "result": {"content": [{"type": "text", "text": "wrong"}]}})
    text(id, "right")


def twice(id, args, meta):
    text(id, "first")
    text(id, "second")


def drip(id, args, meta):
    for byte in b'{"jsonrpc":"2.0","id":':
        raw(bytes([byte]))
        time.sleep(0.2)


def null_id(id, args, meta):
    send({"id": None, "error": {"code": -32603, "message": "lost\nthe\x1b[31m id \u202egnp"}})


def refuse(id, args, meta):
    send({"id": id, "error": {"code": args["code"], "message": args["message"]}})


def fail(id, args, meta):
    text(id, "it did not work", isError=True)


def change(id, args, meta):
    STATE["extra"] = True
    for _ in range(args.get("times", 1)):
        send({"method": "notifications/tools/list_changed"})
    text(id, "changed")


def environment(id, args, meta):
    answer(id, {"content": [], "structuredContent": {
        "env": dict(os.environ), "cwd": os.getcwd(), "args": sys.argv[1:], "pid": os.getpid(),
        "group": os.getpgid(0), "descriptors": sorted(os.listdir("/proc/self/fd"), key=int)}})


def progress(id, args, meta):
    for i in range(args["steps"]):
        time.sleep(args["s"])
        send({"method": "notifications/progress", "params": {
            "progressToken": meta.get("progressToken"), "progress": i + 1, "total": args["steps"],
            "message": f"step {i + 1}"}})
    text(id, "done")


def meta(id, args, meta):
    answer(id, {"content": [], "structuredContent": meta})


def cancelled(id, args, meta):
    answer(id, {"content": [], "structuredContent": {"ids": CANCELLED}})


def ask_back(id, args, meta):
    STATE["answers"].clear()
    methods = args["methods"]
    for i, method in enumerate(methods):
        send({"id": f"back-{i}", "method": method, "params": {}})
    deadline = time.monotonic() + 5
    while len(STATE["answers"]) < len(methods) and time.monotonic() < deadline:
        time.sleep(0.01)
    answer(id, {"content": [], "structuredContent": {"answers": STATE["answers"]}})


def children(id, args, meta):
    child = subprocess.Popen(["sleep", args["marker"]], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL)
    text(id, str(child.pid))


def deaf(id, args, meta):
    text(id, "I do not listen any more")
    time.sleep(3600)


def want_input(id, args, meta):
    answer(id, {"resultType": "input_required", "requestState": "s",
                "inputRequests": {"k": {"method": "elicitation/create", "params": {}}}})


TOOLS = {f.__name__: f for f in (
    echo, say, sleep, never, die, kill, big, big_structured, huge_line, flood, flood_errors, garbage,
    invalid_utf8, broken_result, no_object, wrong_ids, twice, drip, null_id, refuse, fail, change,
    environment, progress, meta, cancelled, ask_back, children, deaf, want_input)}
IN_PLACE = {deaf}


# ---- lists ----

def described(name, **more):
    return {"name": name, "description": f"{name}, a misdeed", "inputSchema": {"type": "object"}, **more}


def tool_list(id, params):
    kind, cursor = option("list"), params.get("cursor")
    tools = [described(n) for n in TOOLS] + [described("late")] * STATE["extra"]
    if kind == "pages":
        page = int(cursor or 0)
        more = {"nextCursor": str(page + 1)} if page < 9 else {}
        return answer(id, {"tools": [described(f"t{page}_{i}") for i in range(10)], **more})
    if kind == "endless":
        return answer(id, {"tools": [described(f"t{time.monotonic_ns()}")], "nextCursor": "again"})
    if kind == "null":
        return answer(id, {"tools": tools, "nextCursor": None})
    if kind == "empty":
        return answer(id, {"tools": tools, "nextCursor": ""})
    if kind == "odd":
        hints = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True,
                 "openWorldHint": False, "title": "Kind"}
        return answer(id, {"tools": [
            described("good", annotations=hints, outputSchema={"type": "object"}), described("good"),
            {"name": "no_schema"}, {"name": "null_schema", "inputSchema": None}, described("has space"),
            described(""), described("x" * 129), 7, None, described("plain", title="Plain")]})
    if kind == "wrong":
        return answer(id, {"tools": {"a": 1}})
    answer(id, {"tools": tools})


# ---- the loop ----

def handle(message):
    id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if method is None:
        STATE["answers"].append({k: v for k, v in message.items() if k != "jsonrpc"})
    elif method == "notifications/cancelled":
        CANCELLED.append(params["requestId"])
    elif id is None:
        pass
    elif method == "server/discover":
        discover(id)
    elif method == "initialize":
        if "--mute" in OPTIONS or "--modern" in OPTIONS:
            return None if "--mute" in OPTIONS else send(
                {"id": id, "error": {"code": -32601, "message": "no such method"}})
        answer(id, {"protocolVersion": option("version", params["protocolVersion"]),
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "rogue", "version": "6.6.6"}})
    elif method == "ping":
        if "--no-ping" not in OPTIONS:
            answer(id, {})
    elif method == "tools/list":
        tool_list(id, params)
    elif method == "tools/call":
        tool = TOOLS[params["name"]]
        run = (id, params.get("arguments") or {}, params.get("_meta") or {})
        tool(*run) if tool in IN_PLACE else threading.Thread(target=tool, args=run, daemon=True).start()
    elif method == "subscriptions/listen":
        pass
    else:
        send({"id": id, "error": {"code": -32601, "message": "no such method"}})
    return None


def discover(id):
    if "--modern" in OPTIONS:
        return answer(id, {"supportedVersions": [MODERN], "capabilities": {"tools": {"listChanged": True}},
                           "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "rogue", "version": "7"}}})
    kind = option("probe", "error")
    if kind == "die":
        os._exit(1)
    if kind == "error":
        send({"id": id, "error": {"code": -32601, "message": "no such method"}})
    return None


def main():
    if "--die-at-start" in OPTIONS:
        print("cannot find my configuration", file=sys.stderr)
        sys.exit(7)
    if "--stay" in OPTIONS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        handle(json.loads(line))
    while "--stay" in OPTIONS:
        time.sleep(1)


main()
