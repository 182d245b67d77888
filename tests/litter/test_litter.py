# SPDX-License-Identifier: Apache-2.0
"""Kill -9 of any process of the house, at any moment, leaves nothing behind.

A hundred deaths under load: twenty of each kind. Whatever dies, afterwards the host has no process,
mount, cgroup, file or descriptor it did not have before.
"""

import os
import pathlib
import random
import signal
import subprocess
import time

import pytest

DEATHS = int(os.environ.get("RETORT_DEATHS", "20"))  # of each kind
KINDS = ["main", "keeper", "warden", "nursery", "zygote"]
RECOVERY_RUNS = {"python": 2500, "bash": 8000}
LOADS = {"python": "return 1", "bash": "RESULT=1"}
if os.geteuid() != 0:
    pytest.skip("looks into processes of other user ids: needs root", allow_module_level=True)


def stat_of(pid):
    """(comm, parent, state), or None when it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    comm = text[text.index("(") + 1:text.rindex(")")]
    state, parent = text[text.rindex(")") + 2:].split()[:2]
    return comm, int(parent), state


def tree_below(root):
    """{pid: comm} of a process and all its descendants."""
    stats = {int(p): s for p in os.listdir("/proc") if p.isdigit() and (s := stat_of(p))}
    children = {}
    for pid, (_, parent, _) in stats.items():
        children.setdefault(parent, []).append(pid)
    found, todo = {}, [root]
    while todo:
        pid = todo.pop()
        if pid in stats:
            found[pid] = stats[pid][0]
            todo += children.get(pid, [])
    return found


def is_zygote(pid, comm):
    """A warmed interpreter, as opposed to its forks: its parent is a nursery's or the warden's, its user not a cell's."""
    if not comm.startswith(("python3", "node", "retort-shell", "retort-node", "MainThread")):
        return False
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    return len(fields.get("NSpid", "").split()) == 2 and fields.get("Seccomp") == "0"


def pick(kind, root):
    for pid, comm in tree_below(root).items():
        if kind == "main" and pid == root or comm == f"retort-{kind}" or kind == "zygote" and is_zygote(pid, comm):
            return pid
    return None


def cgroups():
    return {os.path.join(folder, name) for folder, names, _ in os.walk("/sys/fs/cgroup") for name in names
            if name.startswith("retort-")}


def own_litter():
    """Of this host, what a run could have left beside processes and cgroups: mounts and files."""
    return {"mounts": pathlib.Path("/proc/mounts").read_text(),
            "files": {f"{d}/{f}" for d in ("/tmp", "/dev/shm", "/var/tmp") for f in os.listdir(d)
                      if d == "/dev/shm" or "retort" in f}}


@pytest.fixture(scope="module")
def before():
    return own_litter()


def start(program, language):
    return subprocess.Popen([program, "run", "-l", language, "-c", LOADS[language], "--repeat", "1000000", "--pool", "4"],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for(kind, child, seconds=5.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        pid = pick(kind, child.pid)
        if pid:
            return pid
        time.sleep(0.01)
    pytest.fail(f"there is no {kind} below {child.pid}: {tree_below(child.pid)}")


def gone(pids, seconds=5.0):
    """Those of the processes that are still there after a moment."""
    deadline = time.monotonic() + seconds
    while True:
        left = {pid: stat_of(pid) for pid in pids if stat_of(pid)}
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.01)


def cgroups_of(pids):
    return {c for c in cgroups() if int(c.rsplit("-", 1)[1]) in pids}


def die(program, kind, language, pause):
    """One death under load; returns (processes, cgroups) that stayed."""
    child = start(program, language)
    try:
        wait_for("nursery" if kind != "zygote" else "zygote", child)
        time.sleep(pause)
        victim = wait_for(kind, child)
        family = set(tree_below(child.pid))
        os.kill(victim, signal.SIGKILL)
        if kind == "warden":
            try:
                child.wait(10)  # the program notices, says so and ends
            except subprocess.TimeoutExpired:
                pytest.fail("retort hangs after the death of its warden")
        time.sleep(pause)
    finally:
        if kind != "main" and child.poll() is None:
            family |= set(tree_below(child.pid))
            child.send_signal(signal.SIGTERM if kind == "nursery" else signal.SIGKILL)
        child.wait(10)
    left = gone(family - {child.pid})
    deadline = time.monotonic() + 1
    while cgroups_of(family) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left, cgroups_of(family)


@pytest.mark.parametrize("kind", KINDS)
def test_a_death_leaves_nothing(program, before, kind):
    generator = random.Random(f"{kind}-deaths")
    processes, groups = {}, set()
    for i in range(DEATHS):
        left, left_groups = die(program, kind, list(LOADS)[i % 2], generator.uniform(0, 0.15))
        processes.update(left)
        groups |= left_groups
    deadline = time.monotonic() + 5  # others may use these places too; what is ours to mend stays
    while (after := own_litter()) != before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert processes == {}
    assert after["mounts"] == before["mounts"]
    assert after["files"] - before["files"] == set()
    assert groups == set(), f"{len(groups)} cgroups stayed, such as {sorted(groups)[0]}"


def test_the_warden_dies_with_its_keeper(program):
    """Nobody else would remove the cgroups: a house without a keeper must end, and its program say so."""
    child = start(program, "bash")
    try:
        wait_for("zygote", child)
        warden = wait_for("warden", child)
        os.kill(wait_for("keeper", child), signal.SIGKILL)
        left = gone({warden}, 3)
    finally:
        child.kill()
        child.wait()
    assert left == {}


def test_what_a_killed_keeper_left_is_swept_by_the_next_run(program, run):
    for _ in range(3):
        die(program, "keeper", "bash", 0.05)
    run("bash", "true")
    time.sleep(0.2)
    stale = {c for c in cgroups() if stat_of(int(c.rsplit("-", 1)[1])) is None}
    assert stale == set()


def test_an_ordinary_run_leaves_no_cgroup(run):
    earlier = cgroups()
    for language in ("bash", "python"):
        run(language, "x=1")
    stale = {c for c in cgroups() - earlier if stat_of(int(c.rsplit("-", 1)[1])) is None}
    assert stale == set()


@pytest.mark.parametrize("language", LOADS)
def test_the_death_of_a_zygote_does_not_end_the_service(program, language):
    """Runs go on with a new zygote; the few that were in its hands may fail, the loop may not."""
    child = subprocess.Popen([program, "run", "-l", language, "-c", LOADS[language], "--repeat", str(RECOVERY_RUNS[language]), "--pool", "4", "--json"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    killed = 0
    for _ in range(3):
        deadline = time.monotonic() + 5
        while child.poll() is None and time.monotonic() < deadline:
            pid = pick("zygote", child.pid)
            if pid:
                time.sleep(0.5)  # a zygote that dies while it warms has failed, which is another story
                try:
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
                except ProcessLookupError:
                    pass  # the load has ended, or this was a fork on its way into a cell
                break
            time.sleep(0.01)
    try:
        out, err = child.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        pytest.fail("the loop did not recover from the death of its zygote")
    assert killed >= 2
    assert f'"runs":{RECOVERY_RUNS[language]}' in out, err
    failed = int(out.split('"failed":')[1].split(",")[0])
    assert failed <= killed * 6


def test_a_nursery_that_died_is_missed_but_not_waited_for(program):
    child = start(program, "bash")
    wait_for("zygote", child)
    os.kill(wait_for("nursery", child), signal.SIGKILL)
    deadline = time.monotonic() + 15
    while child.poll() is None and time.monotonic() < deadline and pick("nursery", child.pid) is None:
        time.sleep(0.05)
    recovered = child.poll() is None and pick("nursery", child.pid) is not None
    was_answered = child.poll() is not None
    child.kill()
    child.wait()
    assert recovered or was_answered, "after the death of its nursery the loop neither went on nor ended"
