# SPDX-License-Identifier: Apache-2.0
"""A GitHub-like server: its commits are what $STORY_COMMITS (a file) says."""

import json
import os
import sys

from serving import Server

server = Server("github")


def commits():
    with open(os.environ["STORY_COMMITS"]) as file:
        return json.load(file)


@server.tool("list_commits", "List the commits of a repository, newest first",
             {"repo": {"type": "string"}, "limit": {"type": "integer"}}, read_only=True)
def list_commits(repo="retort", limit=30):
    return commits()[:limit]


@server.tool("get_commit", "Get one commit by its hash", {"sha": {"type": "string"}},
             required=["sha"], read_only=True)
def get_commit(sha):
    for commit in commits():
        if commit["sha"] == sha:
            return commit
    raise LookupError(f"no commit {sha}")


@server.tool("delete_repository", "Delete a repository for good", {"repo": {"type": "string"}},
             required=["repo"])
def delete_repository(repo):
    return {"deleted": repo}


@server.tool("crash", "End this server in the middle of a call", {})
def crash():
    os.kill(os.getpid(), 9)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(__file__))
    server.serve()
