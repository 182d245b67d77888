#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries the eight operations of /api/agent against a running server, and prints what came of each.

    tests/service/agent_runner.py http://127.0.0.1:8002

Exit status 0: all that the server has did what they should. Operations it does not have (documents,
when they are not built in) are printed as skipped, with the reason.
"""

import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request


class Skipped(Exception):
    pass


def ask(method, url, path, body=None, **query):
    if query:
        path += "?" + urllib.parse.urlencode(query)
    request = urllib.request.Request(url + path, method=method, headers={"Content-Type": "application/json"},
                                     data=None if body is None else json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def expect(holds, what, answer):
    if not holds:
        raise AssertionError(f"{what}: {json.dumps(answer)[:300]}")


def list_tools(url):
    status, answer = ask("GET", url, "/api/agent/list-tools")
    expect(status == 200 and answer["success"] and answer["category"] == "all", "no list", answer)
    expect(answer["count"] == len(answer["tools"]) >= 11, "too few tools", answer)
    expect(not any("code" in tool for tool in answer["tools"]), "browsing gives code", answer)
    return f"{answer['count']} tools"


def search_tools(url):
    status, answer = ask("GET", url, "/api/agent/search-tools", q="STRIPE")
    expect(status == 200 and answer["count"] == 1, "one tool is about Stripe", answer)
    status, answer = ask("GET", url, "/api/agent/search-tools", q=" ")
    expect(status == 400 and answer["error"] == "Search query is required", "a blank query", answer)
    return "stripe found, a blank query refused"


def execute_code(url):
    status, answer = ask("POST", url, "/api/agent/execute-code",
                         {"code": "import json; print(json.dumps({'sum': sum(inputs['n'])}))", "inputs": {"n": [1, 2, 3]}})
    expect(status == 200 and answer["success"] and answer["output"] == {"sum": 6}, "a sum", answer)
    return f"{answer['metadata']['execTime']:.3f} s, {answer['metadata']['cost']:.6f} USD"


def protect_data(url):
    status, answer = ask("POST", url, "/api/agent/execute-code",
                         {"code": "import json; print(json.dumps(inputs))",
                          "inputs": {"name": "John Doe", "email": "john@example.com", "ssn": "123-45-6789"}})
    expect(status == 200 and answer["output"]["email"] == "[EMAIL_REDACTED]", "an address", answer)
    expect(answer["metadata"]["piiTypes"] == ["email", "ssn"], "what was found", answer)
    return "e-mail and SSN masked"


def save_pattern(url):
    name = f"runner-{time.time_ns()}"
    pattern = {"name": name, "code": "print(sum(inputs['n']))", "description": "adds numbers", "tags": ["test"]}
    status, answer = ask("POST", url, "/api/agent/save-pattern", pattern)
    expect(status == 200 and answer["success"] and answer["snippetId"].startswith("snippet_"), "saved", answer)
    status, answer = ask("POST", url, "/api/agent/save-pattern", pattern)
    expect(status == 409, "the name is taken", answer)
    status, answer = ask("GET", url, "/api/agent/get-pattern", name=name)
    expect(answer["pattern"]["code"] == pattern["code"], "the code comes back", answer)
    return "saved, found, and not saved twice"


def get_pattern(url):
    status, answer = ask("GET", url, "/api/agent/get-pattern", name="payroll-duplicate-detector")
    expect(status == 200 and answer["pattern"]["code"], "the sample", answer)
    status, missing = ask("GET", url, "/api/agent/get-pattern", name="no such pattern")
    expect(status == 404 and missing["error"] == "Pattern not found", "a missing one", missing)
    return f"used {answer['pattern']['metadata']['usageCount']} times"


def has_documents(url):
    with urllib.request.urlopen(url + "/openapi.json", timeout=60) as answer:
        if "/api/agent/search-documents" not in json.load(answer)["paths"]:
            raise Skipped("this server has no document index")


def index_document(url):
    has_documents(url)
    status, answer = ask("PUT", url, "/api/agent/search-documents", {"filePath": ""})
    expect(status == 400 and answer["error"] == "File path is required", "no path", answer)
    return "a missing path is refused"


def search_documents(url):
    has_documents(url)
    status, answer = ask("POST", url, "/api/agent/search-documents", {"query": "expenses", "fileIds": []})
    expect(status == 400 and answer["error"] == "File IDs are required", "no files", answer)
    return "a search without files is refused"


OPERATIONS = [list_tools, search_tools, execute_code, protect_data, save_pattern, get_pattern,
              search_documents, index_document]


def main(url):
    failed = 0
    for number, operation in enumerate(OPERATIONS, 1):
        name = operation.__name__.replace("_", " ")
        try:
            print(f"{number} ok       {name}: {operation(url)}")
        except Skipped as why:
            print(f"{number} skipped  {name}: {why}")
        except (AssertionError, KeyError, OSError) as why:
            failed += 1
            print(f"{number} FAILED   {name}: {why!r}")
    print(f"{len(OPERATIONS) - failed} of {len(OPERATIONS)} as they should be")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1].rstrip("/") if len(sys.argv) > 1 else "http://127.0.0.1:8002"))
