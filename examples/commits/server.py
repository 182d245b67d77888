# SPDX-License-Identifier: Apache-2.0
"""An MCP server over stdio with one tool: list_commits, of a repository of a thousand commits.

It stands for the servers you have. 42 of its commits are of the last week, by five people.
"""

import datetime
import json
import sys

AUTHORS = ["ada", "grace", "edsger", "barbara", "donald"]
RECENT = 42


def commits(count=1000, recent=RECENT):
    """Newest first, 1.2 KB each; `recent` of them are of the last week."""
    now = datetime.datetime.now(datetime.timezone.utc)
    made = []
    for n in range(count):
        age = datetime.timedelta(hours=1 + n * 3) if n < recent else datetime.timedelta(days=9 + n)
        made.append({"sha": f"{n:040x}", "author": AUTHORS[n % len(AUTHORS)],
                     "date": (now - age).isoformat(), "message": f"change {n}",
                     "files": [f"src/room{i}/file{n}.c" for i in range(20)],
                     "patch": "+line\n-line\n" * 60})
    return made


TOOL = {
    "name": "list_commits",
    "description": "List the commits of a repository, newest first",
    "inputSchema": {"type": "object", "properties": {"limit": {"type": "integer", "default": 30}}},
    "annotations": {"readOnlyHint": True},
}


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "commits", "version": "1.0.0"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call" and params["name"] == TOOL["name"]:
        found = commits()[:(params.get("arguments") or {}).get("limit", 30)]
        return {"content": [{"type": "text", "text": json.dumps(found)}]}
    return {} if method == "ping" else None


def main():
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(request["method"], request.get("params") or {})
        outcome = {"result": result} if result is not None else {
            "error": {"code": -32601, "message": "there is no such method or tool"}}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome}), flush=True)


if __name__ == "__main__":
    main()
