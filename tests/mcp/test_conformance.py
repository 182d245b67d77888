# SPDX-License-Identifier: Apache-2.0
"""The public conformance suite judges our client, in both revisions that it has requirements for."""

import re
import subprocess

import pytest
from driving import BUILD, HERE, NODE

SUITE = HERE / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
REQUIRED = {"2025-11-25": 18, "2026-07-28": 32}
# Extensions that are never scored and that we do not have: keys of our own for tokens (DPoP), and
# three more ways to get a token.
ABSENT = {"auth/client-credentials-jwt", "auth/enterprise-managed-authorization", "auth/dpop",
          "auth/dpop-nonce", "auth/wif-jwt-bearer"}


@pytest.mark.parametrize("version", REQUIRED)
def test_the_suite_passes(version, tmp_path):
    done = subprocess.run([NODE, SUITE, "client", "--command", BUILD / "mcp-conformance-client",
                           "--requirements", version, "-o", tmp_path],
                          capture_output=True, text=True, timeout=300, cwd=tmp_path)
    told = done.stdout + done.stderr
    verdicts = dict(reversed(v) for v in re.findall(r"^([✓✗]) (\S+): \d+ passed", told, re.M))
    failed = {name for name, verdict in verdicts.items() if verdict == "✗"}
    assert failed == ABSENT, told[-5000:]
    assert done.returncode == 0, told[-5000:]
    assert len(verdicts) - len(failed) >= REQUIRED[version]
