# SPDX-License-Identifier: Apache-2.0
"""Tokens without anybody to ask: client credentials from the configuration.

What the conformance suite shows with a person's consent is not repeated here.
"""

import base64
import urllib.parse

import pytest
from web import Web


class Guarded(Web):
    """An MCP server and its authorization server in one."""

    def __init__(self):
        super().__init__(modern=True)
        self.good, self.forms, self.metadata = "t1", [], {}

    def serve(self, r):
        if r.path == "/token":
            self.forms.append((r.headers["Authorization"], urllib.parse.parse_qs(r.body.decode())))
            return r.reply(200, {"access_token": self.good, "token_type": "Bearer"})
        if r.path == "/.well-known/oauth-protected-resource/mcp":
            return r.reply(200, {"resource": self.url, "authorization_servers": [self.origin],
                                 "scopes_supported": ["read"]})
        if r.path == "/.well-known/oauth-authorization-server":
            return r.reply(200, {"issuer": self.origin, "token_endpoint": self.origin + "/token",
                                 "authorization_endpoint": self.origin + "/authorize",
                                 "code_challenge_methods_supported": ["S256"], **self.metadata})
        if not r.path.startswith("/mcp"):
            return r.reply(404)
        if r.headers["Authorization"] != f"Bearer {self.good}":
            return r.reply(401, WWW_Authenticate='Bearer scope="write"')
        return super().serve(r)


@pytest.fixture
def guarded():
    web = Guarded()
    yield web
    web.close()


def config(web, **more):
    return {"a": {"url": web.url, "oauth": {"client_id": "me", "client_secret": "${S}", **more}}}


def test_a_token_is_had_for_credentials_and_used_for_everything(clients, guarded):
    client = clients(config(guarded), env={"S": "a:b c"})
    assert client.call("a:x")["value"] == "called" and client.call("a:x")["value"] == "called"
    [(header, form)] = guarded.forms
    assert header == "Basic " + base64.b64encode(b"me:a%3Ab%20c").decode()
    assert form == {"grant_type": ["client_credentials"], "scope": ["write"],
                    "resource": [guarded.url]}


def test_a_token_that_is_refused_is_replaced(clients, guarded):
    client = clients(config(guarded), env={"S": "s"})
    client.call("a:x")
    guarded.good = "t2"
    tickets = [client.start("a:x") for _ in range(5)]
    assert [client.result(t)["value"] for t in tickets] == ["called"] * 5
    assert len(guarded.forms) == 2


@pytest.mark.parametrize("lie, words", [
    ({"issuer": "https://elsewhere.example"}, "which it is not"),
    ({"code_challenge_methods_supported": ["plain"]}, "PKCE"),
    ({"token_endpoint": "http://elsewhere.example/token"}, "safe")])
def test_an_authorization_server_that_is_not_right_gets_no_secret(clients, guarded, lie, words):
    guarded.metadata = lie
    error = clients(config(guarded), env={"S": "s3cret"}).call("a:x")["error"]
    assert words in error["text"] and "s3cret" not in error["text"] and guarded.forms == []
