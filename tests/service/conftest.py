# SPDX-License-Identifier: Apache-2.0
"""What tests of the service share; house.py says how they drive it."""

import os
import subprocess
import time

import pytest

from house import serve, service


@pytest.fixture(scope="session")
def serving():
    return serve


@pytest.fixture(scope="module")
def server():
    with serve() as one:
        yield one


@pytest.fixture(scope="session")
def postgres_server():
    with service("postgres", "RETORT_TEST_POSTGRES_URL") as url:
        yield url


@pytest.fixture
def postgres(postgres_server):
    """The URL of a schema of one's own."""
    schema = f"t{os.getpid()}_{time.monotonic_ns()}"
    psql = ["psql", "-qX", "-v", "ON_ERROR_STOP=1", postgres_server, "-c"]
    subprocess.run([*psql, f"CREATE SCHEMA {schema}"], check=True, capture_output=True)
    joint = "&" if "?" in postgres_server else "?"
    yield f"{postgres_server}{joint}options=-csearch_path%3D{schema}"
    subprocess.run([*psql, f"DROP SCHEMA {schema} CASCADE"], check=False, capture_output=True)


@pytest.fixture(scope="session")
def redis():
    with service("redis", "RETORT_TEST_REDIS_URL") as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request):
    """Arguments for `serve`: the same test on each store."""
    if request.param == "sqlite":
        return []
    return ["--database-url", request.getfixturevalue("postgres")]
