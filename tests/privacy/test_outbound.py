# SPDX-License-Identifier: Apache-2.0
"""There is one door to other services (src/base/outbound.h), and no adapter has a way around it.

This looks at the sources: whoever hands bytes to libcurl, or opens a connection by other means, must be
known here. tests/service/test_leaks.py then looks at what real receivers get.
"""

import pathlib
import re

SRC = pathlib.Path(__file__).resolve().parents[2] / "src"
SOURCES = [path for path in SRC.rglob("*.[ch]") if not re.search(r"_(test|fuzz)\.c$", path.name)]

# Who speaks HTTP, and what it sends. A new adapter sends RT_OUTBOUND_DATA and is named here.
CLIENTS = {
    "telemetry/post.c": {"DATA"},
    "tools/mcp_fetch.c": {"TOOL", "LOGIN"},
    "tools/mcp_oauth.c": set(),           # URLs only: mcp_fetch.c sends
    "tools/mcp_oauth_discover.c": set(),
}
# Who opens connections without libcurl: to the operator's own stores, and for cells, by their policy.
DIALLERS = {"store/cache_link.c", "store/postgres.c", "sandbox", "guests"}

SENDING = re.compile(r"CURLOPT_(?:COPY)?POSTFIELDS\b|CURLOPT_(?:READFUNCTION|READDATA|MIMEPOST|HTTPPOST|UPLOAD)\b"
                     r"|\bcurl_(?:easy_send|ws_send)\b")
DIALLING = re.compile(r"(?<![\w>.])(?:connect|getaddrinfo|SSL_connect|redisConnect\w*|PQconnect\w*|sendto)\(")


def name(path):
    return str(path.relative_to(SRC))


def code(path):
    text = path.read_text()
    text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def test_only_known_files_speak_http():
    users = {name(path) for path in SOURCES if "curl/curl.h" in path.read_text()}
    assert users == set(CLIENTS), "a new client of libcurl: let it send through base/outbound.h and name it here"


def test_every_byte_that_libcurl_sends_was_cleared():
    sending = [(name(path), line) for path in SOURCES for line in code(path).splitlines() if SENDING.search(line)]
    assert sending, "the pattern finds nothing: has the way of sending changed?"
    for file, line in sending:
        assert "rt_outbound_bytes(" in line, f"{file} sends what was not cleared: {line.strip()}"


def test_what_is_not_scrubbed_is_sent_by_tools_only():
    kinds = {}
    for path in SOURCES:
        for kind in re.findall(r"\bRT_OUTBOUND_(TOOL|LOGIN)\b", code(path)):
            kinds.setdefault(name(path), set()).add(kind)
    del kinds["base/outbound.h"]
    assert kinds == {file: sent for file, sent in CLIENTS.items() if "TOOL" in sent}


def test_nobody_dials_past_libcurl():
    for path in SOURCES:
        file = name(path)
        if not any(file == known or file.startswith(known + "/") for known in DIALLERS):
            assert not DIALLING.search(code(path)), f"{file} opens a connection of its own"


def test_only_the_program_itself_says_who_scrubs():
    setters = {name(path) for path in SOURCES if re.search(r"\brt_outbound_scrub_set\(", code(path))}
    assert setters == {"base/outbound.c", "base/outbound.h", "cli/main.c", "cli/serve.c"}
