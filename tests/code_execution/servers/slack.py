# SPDX-License-Identifier: Apache-2.0
"""A Slack-like server. Its messages hold personal data, as people's do."""

from serving import Server

server = Server("slack")
MESSAGES = [{"user": f"dev{n % 5}", "text": f"message {n}: write to dev{n % 5}@example.org"}
            for n in range(50)]


@server.tool("list_messages", "List the messages of a channel",
             {"channel": {"type": "string"}, "limit": {"type": "integer"}}, read_only=True)
def list_messages(channel="general", limit=20):
    return MESSAGES[:limit]


@server.tool("send_message", "Send a message to a person or a channel",
             {"to": {"type": "string"}, "text": {"type": "string"}}, required=["to", "text"])
def send_message(to, text):
    return {"sent": True, "to": to}


@server.tool("slow_echo", "Answer after a while, for tests of calls side by side",
             {"value": {}, "seconds": {"type": "number"}}, read_only=True)
def slow_echo(value=None, seconds=0.5):
    import time
    time.sleep(seconds)
    return {"value": value}


server.serve()
