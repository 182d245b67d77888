# SPDX-License-Identifier: Apache-2.0
"""A schema-driven fuzzer against /openapi.json: no server error, no answer outside the schema.

Schemathesis comes from PyPI, into build/schemathesis, so it runs only when asked to
(RETORT_SCHEMA_FUZZ=1); where PyPI cannot be reached it is skipped and says so. RETORT_SCHEMATHESIS_EXAMPLES sets how many requests an operation gets (3).
"""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACE = ROOT / "build/schemathesis"
VERSION = "4.32.5"
CHECKS = ("not_a_server_error,status_code_conformance,content_type_conformance,"
          "response_schema_conformance,response_headers_conformance")


@pytest.fixture(scope="module")
def fuzzer():
    if not os.environ.get("RETORT_SCHEMA_FUZZ"):
        pytest.skip("set RETORT_SCHEMA_FUZZ=1: it needs PyPI and a few minutes")
    program = PLACE / "bin/schemathesis"
    if not program.exists():
        for step in ([sys.executable, "-m", "venv", PLACE],
                     [PLACE / "bin/pip", "install", "-q", "--no-input", f"schemathesis=={VERSION}"]):
            try:
                done = subprocess.run(step, capture_output=True, text=True, timeout=120)
            except subprocess.TimeoutExpired:
                pytest.skip("PyPI did not answer within 120 s")
            if done.returncode != 0:
                pytest.skip(f"schemathesis cannot be had here: {(done.stderr or done.stdout)[-200:]}")
    return program


def test_nothing_outside_the_schema(serving, fuzzer):
    with serving("--server.rate_per_minute", "0", "--execution.timeout", "2s") as server:
        done = subprocess.run(
            [fuzzer, "run", f"{server.url}/openapi.json", "--checks", CHECKS, "--workers", "2",
             "--max-examples", os.environ.get("RETORT_SCHEMATHESIS_EXAMPLES", "3"),
             "--phases", "examples,coverage,fuzzing", "--suppress-health-check", "all",
             "--generation-database", "none"],
            cwd=server.data_dir, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout[-6000:]
        assert server.get("/health").status == 200
