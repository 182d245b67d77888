# SPDX-License-Identifier: Apache-2.0
"""Thousands of runs in one process: memory, descriptors and cgroups are where they were.

RETORT_LEAK_RUNS sets the number of runs a language (2,000 in the suite; the figure of the design is 10,000).
"""

import os
import pathlib
import subprocess
import time

import pytest

RUNS = int(os.environ.get("RETORT_LEAK_RUNS", "2000"))
SLACK_KB = 2048
if os.geteuid() != 0:
    pytest.skip("looks into processes of other user ids: needs root", allow_module_level=True)


def stat_of(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    return text[text.index("(") + 1:text.rindex(")")], int(text[text.rindex(")") + 2:].split()[1])


def house_of(root):
    """{role: pid} of the processes that stay; cells come and go and are left out."""
    stats = {int(p): s for p in os.listdir("/proc") if p.isdigit() and (s := stat_of(p))}
    found, todo = {}, [root]
    while todo:
        pid = todo.pop()
        comm = stats[pid][0] if pid in stats else ""
        try:
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        is_zygote = comm.startswith(("python3", "retort-shell")) and len(fields["NSpid"].split()) == 2 and fields["Seccomp"] == "0"
        if pid == root:
            found["main"] = pid
        elif comm in ("retort-keeper", "retort-warden", "retort-nursery"):
            found[comm] = pid
        elif is_zygote:
            found["zygote"] = pid
        todo += [p for p, (_, parent) in stats.items() if parent == pid]
    return found


def measure(pid):
    """Resident memory that is its own, in kB, and open descriptors."""
    rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    private = sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith(("Private_", "Shared_Dirty")))
    return private, len(os.listdir(f"/proc/{pid}/fd"))


def cgroup_count(keeper):
    """Directories of this house only: others may be at work on the same host."""
    return sum(len(names) for folder, names, _ in os.walk("/sys/fs/cgroup") if folder.endswith(f"/retort-{keeper}"))


@pytest.mark.parametrize("language, code", [("bash", "RESULT=1"), ("python", "return 1")])
def test_thousands_of_runs_leave_no_trace_in_the_house(program, language, code):
    """Two loads of one process cannot be told apart from outside, so the first sample is taken by time: after a quarter."""
    probe = subprocess.run([program, "run", "-l", language, "-c", code, "--repeat", "300", "--json"], capture_output=True,
                           stdin=subprocess.DEVNULL, text=True, timeout=120)
    rate = float(probe.stdout.split('"per_second":')[1].rstrip("}\n"))
    child = subprocess.Popen([program, "run", "-l", language, "-c", code, "--repeat", str(RUNS), "--json"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(min(RUNS / rate / 4, 500 / rate) + 0.3)
    house = house_of(child.pid)
    assert set(house) == {"main", "retort-keeper", "retort-warden", "retort-nursery", "zygote"}, house
    first, first_groups = {role: measure(pid) for role, pid in house.items()}, cgroup_count(house["retort-keeper"])
    last, last_groups = first, first_groups
    peak_fds = {}
    while child.poll() is None:
        try:
            last, last_groups = {role: measure(pid) for role, pid in house.items()}, cgroup_count(house["retort-keeper"])
        except OSError:
            break
        for role, (_, fds) in last.items():
            peak_fds[role] = max(peak_fds.get(role, 0), fds)
        time.sleep(0.1)
    out, err = child.communicate(timeout=30)
    assert f'"runs":{RUNS},"failed":0' in out, out + err
    report = {role: (first[role], last[role]) for role in house}
    for role in house:
        assert last[role][0] <= first[role][0] + SLACK_KB, report
        # cells under way hold descriptors in main and warden; what leaks grows with the runs, this does not
        assert peak_fds.get(role, 0) <= first[role][1] + 120, report
    assert last_groups <= first_groups
