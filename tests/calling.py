# SPDX-License-Identifier: Apache-2.0
"""Calls the real program, RETORT (default: build/retort), to its end. conftest.py has the rest."""

import collections
import os
import pathlib
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
RETORT = os.environ.get("RETORT", str(ROOT / "build/retort"))

Ended = collections.namedtuple("Ended", "status stdout stderr seconds")


def call(*args, stdin=None, env=None, timeout=60, prefix=(), cwd=None):
    """Runs retort to its end. A hang is a failure of its own, told by the name of the command."""
    command = [*prefix, RETORT, *map(str, args)]
    began = time.monotonic()
    given = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
    try:
        done = subprocess.run(command, capture_output=True, timeout=timeout, cwd=cwd,
                              env={**os.environ, **(env or {})}, **given)
    except subprocess.TimeoutExpired:
        pytest.fail(f"retort hung for {timeout} s: {' '.join(command)[:300]}")
    return Ended(done.returncode, done.stdout.decode(errors="surrogateescape"),
                 done.stderr.decode(errors="surrogateescape"), time.monotonic() - began)
