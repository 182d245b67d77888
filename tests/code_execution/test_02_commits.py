# SPDX-License-Identifier: Apache-2.0
"""A thousand commits stay beside the data; what comes back fits into a sentence (S2-97)."""

import json

import pytest

ANALYSIS = {
    "javascript": """
        const commits = await github.listCommits({limit: 1000});
        const recent = commits.filter(commit => isLastWeek(commit.date));
        const by = {};
        for (const commit of recent) by[commit.author] = (by[commit.author] ?? 0) + 1;
        return {total: recent.length, authors: Object.keys(by).length, by};""",
    "typescript": """
        interface Commit { author: string; date: string }
        const commits: Commit[] = await github.listCommits({limit: 1000});
        const recent = commits.filter((commit: Commit) => isLastWeek(commit.date));
        const by: Record<string, number> = {};
        for (const commit of recent) by[commit.author] = (by[commit.author] ?? 0) + 1;
        return {total: recent.length, authors: Object.keys(by).length, by};""",
    "python": """
from collections import Counter
commits = github.list_commits(limit=1000)
by = Counter(commit["author"] for commit in commits if is_last_week(commit["date"]))
return {"total": sum(by.values()), "authors": len(by), "by": by}""",
}


@pytest.mark.parametrize("language", ANALYSIS)
def test_megabytes_go_in_and_a_few_bytes_come_out(house, language):
    answer = house.run(language, ANALYSIS[language])
    assert answer["status"] == "SUCCESS", answer
    assert answer["result"]["total"] == 42 and answer["result"]["authors"] == 5
    assert answer["tools"]["bytesIn"] > 1_000_000
    assert len(json.dumps(answer["result"])) < 1_000
    assert answer["tool_ids"] == ["github:list_commits"]
    tokens = answer["cost"]
    assert tokens["tokensSaved"] / (tokens["tokensSaved"] + tokens["tokens"]) > 0.99


def test_the_second_run_is_answered_from_the_cache(house):
    house.forget_calls()
    first = house.run("javascript", ANALYSIS["javascript"], cache="use", name="cached")
    second = house.run("javascript", ANALYSIS["javascript"], cache="use", name="cached")
    assert (first["cached"], second["cached"]) == (False, True)
    assert second["result"] == first["result"]
    assert len(house.calls("github")) == 1


def test_a_tool_that_changes_something_keeps_its_run_out_of_the_cache(house):
    code = "return await jira.createIssue({summary: 'once more'})"
    first = house.run("javascript", code, cache="use")
    second = house.run("javascript", code, cache="use")
    assert not first["cached"] and not second["cached"]
