# SPDX-License-Identifier: Apache-2.0
"""Drives the real program, RETORT (default: build/retort), as a caller would.

    retort("languages", "--json").stdout            any command, as a finished process
    run("python", "return 6 * 7")["result"]         one run in a fresh cell, as its JSON answer
    run("bash", "sleep 9", timeout="500ms")         policy keys are keyword arguments

Each run starts the whole house and costs 0.2 to 0.4 s, so attacks come in batches: one script makes
many attempts and answers {name: how it ended}, and each attempt is judged by a test of its own.
"""

import json
import os
import pathlib
import tempfile
import time

import pytest

from calling import RETORT, ROOT, Ended, call

ARGUMENT_MAX = 100_000  # the kernel takes 128 KiB an argument; longer code goes by a file


def flags(policy):
    for key, value in policy.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            yield "--" + key.replace("_", "-")
            yield str(one)


def answer_of(ended):
    """The one JSON object that --json promises, whatever the code did."""
    assert ended.status >= 0, f"retort was ended by signal {-ended.status}: {ended.stderr[:500]}"
    try:
        text = ended.stdout.encode(errors="surrogateescape").decode()
        return json.loads(text, parse_int=lambda digits: int(digits) if len(digits) < 4000 else digits)
    except ValueError as why:
        pytest.fail(f"no JSON answer ({why}): status {ended.status}, stdout "
                    f"{ended.stdout[:300]!r}, stderr {ended.stderr[:500]!r}")


NOTHING = object()


def run_code(language, code, *, input=NOTHING, stdin=None, env_of_caller=None, wait=60, prefix=(),
             extra=(), **policy):
    args = ["run", "-l", language, "--json", *flags(policy), *extra]
    if input is not NOTHING:
        args += ["--input", input if isinstance(input, str) and input.startswith("@")
                 else json.dumps(input)]
    with tempfile.TemporaryDirectory() as folder:
        if len(code) > ARGUMENT_MAX:
            path = pathlib.Path(folder, "code")
            path.write_text(code)
            args.append(path)
        else:
            args += ["-c", code]
        ended = call(*args, stdin=stdin, env=env_of_caller, timeout=wait, prefix=prefix)
    answer = answer_of(ended)
    answer["exit_status"] = ended.status
    answer["seconds"] = ended.seconds
    answer["caller_stderr"] = ended.stderr
    return answer


@pytest.fixture(scope="session")
def retort():
    return call


@pytest.fixture(scope="session")
def run():
    return run_code


@pytest.fixture(scope="session")
def program():
    return RETORT


# ---- attacks ----

PYTHON_ATTACKS = '''
import ctypes, errno, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
outcomes = {}

def attempt(name, attack):
    """Notes the name of the error an attack ends with, or "succeeded: …"."""
    try:
        outcomes[name] = "succeeded: " + repr(attack())[:200]
    except OSError as e:
        outcomes[name] = errno.errorcode.get(e.errno, str(e.errno))
    except BaseException as e:
        outcomes[name] = type(e).__name__

def syscall(number, *args):
    ctypes.set_errno(0)
    value = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a
                                                  for a in args])
    if value < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return value
'''


@pytest.fixture(scope="session")
def attack(run):
    """Runs Python attempts in one cell: {name: errno name or "succeeded: …"} and the denials."""

    def attack(script, **policy):
        answer = run("python", PYTHON_ATTACKS + script + "\nreturn outcomes", **policy)
        assert answer["success"], answer["error"]
        return answer["result"], answer["denials"]

    return attack


# ---- the host, seen from outside ----

def host_processes():
    """{pid: argv} of everything that runs on this host."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                argv = pathlib.Path("/proc", entry, "cmdline").read_bytes()
            except OSError:
                continue
            found[int(entry)] = argv.replace(b"\0", b" ").decode(errors="replace").strip()
    return found


def processes_with(marker, within=3.0):
    """What is left of a marked process; given a moment, because an end takes a moment."""
    deadline = time.monotonic() + within
    while True:
        left = {pid: argv for pid, argv in host_processes().items() if marker in argv}
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)


@pytest.fixture(scope="session")
def left_on_host():
    return processes_with
