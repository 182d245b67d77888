# SPDX-License-Identifier: Apache-2.0
"""What the tests of the story share: three servers of other people's, and a Retort that knows them.

    with story() as house:                      github, jira and slack, each a process of its own
        house.run("javascript", "return (await github.listCommits({limit: 3})).length")["result"]
        house.calls("github")                   what github was asked, in order
        house.set_commits(commits(1000))        what github has
"""

import contextlib
import json
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "service"), str(HERE.parents[1] / "examples/commits")]

from house import serve  # noqa: E402
from server import commits  # noqa: E402, that of examples/commits


class House:
    def __init__(self, server, folder):
        self.server, self.folder = server, folder

    def set_commits(self, made):
        (self.folder / "commits.json").write_text(json.dumps(made))

    def calls(self, server=None):
        log = self.folder / "calls.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [line for line in lines if server in (None, line["server"])]

    def forget_calls(self):
        (self.folder / "calls.jsonl").unlink(missing_ok=True)

    def post(self, language, code, **more):
        return self.server.post("/v1/executions", {"language": language, "code": code, **more})

    def run(self, language, code, **more):
        reply = self.post(language, code, **more)
        assert reply.status == 200, reply
        return reply.json


def configuration(folder, servers=("github", "jira", "slack"), **more):
    env = {"STORY_LOG": str(folder / "calls.jsonl"), "STORY_COMMITS": str(folder / "commits.json")}
    known = {name: {"command": sys.executable, "args": [str(HERE / f"servers/{name}.py")],
                    "env": env, "rate_limit": 0} for name in servers}
    return {"mcpServers": {**known, **more}}


@contextlib.contextmanager
def story(*flags, more=None):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "mcp.json"
        path.write_text(json.dumps(configuration(folder, **(more or {}))))
        with serve("--mcp-config", str(path), *flags) as server:
            house = House(server, folder)
            house.set_commits(commits())
            yield house
