# SPDX-License-Identifier: Apache-2.0
"""Code sees tokens, tools that may get values, and nobody else does (S2-99)."""

import pytest

from story import story


@pytest.fixture(scope="module")
def house():
    with story("--tools.sees_pii", "slack:send_message") as one:
        yield one


def test_code_sees_tokens_of_what_a_tool_answered(house):
    answer = house.run("javascript", """
        const messages = await slack.listMessages({limit: 5});
        return {saw: messages.some(m => m.text.includes('example.org')), text: messages[0].text};""",
                       privacy="tokens")
    assert answer["result"] == {"saw": False, "text": "message 0: write to [EMAIL_1]"}


def test_a_tool_that_is_granted_values_gets_them_and_another_does_not(house):
    house.forget_calls()
    code = """
text = slack.list_messages(limit=1)[0]["text"]
token = text[text.index("["):]
slack.send_message(to=token, text="hello")
jira.create_issue(summary=token)
return token"""
    answer = house.run("python", code, privacy="tokens")
    assert answer["result"] == "[EMAIL_1]"
    sent, = [c for c in house.calls() if c["tool"] == "send_message"]
    made, = [c for c in house.calls() if c["tool"] == "create_issue"]
    assert sent["arguments"]["to"] == "dev0@example.org"
    assert made["arguments"]["summary"] == "[EMAIL_1]"


def test_values_come_back_into_the_answer_when_asked(house):
    code = "return slack.list_messages(limit=1)[0]['text']"
    masked = house.run("python", code, privacy="tokens")["result"]
    clear = house.run("python", code, privacy={"mode": "tokens", "detokenize": True})["result"]
    assert masked.endswith("[EMAIL_1]") and clear.endswith("dev0@example.org")


def test_code_counts_without_seeing(house):
    answer = house.run("python", "m = slack.list_messages(limit=4)\nreturn [pii.count(m), pii.types(m)]",
                       privacy="tokens")
    assert answer["result"] == [4, ["EMAIL"]]
    answer = house.run("typescript", "return await pii.count(['a@example.org', 'b@example.org'])")
    assert answer["result"] == 2
