# SPDX-License-Identifier: Apache-2.0
"""A Jira-like server."""

from serving import Server

server = Server("jira")
ISSUES = [{"key": f"RT-{n}", "summary": f"issue {n}", "status": "open" if n % 3 else "done",
           "assignee": f"dev{n % 5}"} for n in range(1, 31)]


@server.tool("search_issues", "Search the tickets of a project by their status",
             {"status": {"type": "string"}}, read_only=True)
def search_issues(status=None):
    return [issue for issue in ISSUES if status in (None, issue["status"])]


@server.tool("create_issue", "Create a ticket", {"summary": {"type": "string"}},
             required=["summary"])
def create_issue(summary):
    return {"key": "RT-99", "summary": summary}


server.serve()
