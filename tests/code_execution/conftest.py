# SPDX-License-Identifier: Apache-2.0
"""One house for all tests of a file; story.py says what is in it."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from story import story  # noqa: E402


@pytest.fixture(scope="module")
def house():
    with story() as one:
        yield one
