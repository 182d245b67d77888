# SPDX-License-Identifier: Apache-2.0
"""The host's files, processes, environment and descriptors, looked for from inside a cell."""

import json
import os
import pathlib
import uuid

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECRET = "seekret-" + uuid.uuid4().hex
HOST_PATHS = ["/etc/shadow", "/etc/ssh", "/etc/sudoers", "/root", "/home", "/var/log", "/var/lib", "/sys",
              "/run", "/boot", "/mnt", "/opt", "/srv", "/dev/kmsg", "/dev/mem", "/dev/sda", "/dev/vda",
              "/dev/kvm", "/dev/tty", "/dev/ptmx", "/dev/fuse", "/old", "/stage",
              str(ROOT), str(ROOT / "Makefile"), str(ROOT / "src"), str(ROOT / ".git/config"),
              "/proc/self/root" + str(ROOT), "/proc/self/cwd/../.." + str(ROOT), "/proc/self/root/root",
              "/../../../../etc/shadow", "/work/../../root", "/proc/thread-self/root/etc/shadow"]
PROC_PATHS = ["/proc/kcore", "/proc/kallsyms", "/proc/sys", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger",
              "/proc/kmsg", "/proc/keys", "/proc/config.gz", "/proc/bus", "/proc/irq", "/proc/mounts/../kcore",
              "/proc/1/environ", "/proc/1/mem", "/proc/1/maps", "/proc/1/root", "/proc/1/root/etc/shadow",
              "/proc/1/cwd", "/proc/1/fd", "/proc/1/fd/0", "/proc/1/ns/mnt", "/proc/1/exe", "/proc/1/task/1/mem", "/proc/self/pagemap"]
WRITABLE_ELSEWHERE = ["/x", "/etc/x", "/usr/x", "/usr/lib/x", "/bin/x", "/retort/x", "/dev/x", "/proc/x", "/var/x",
                      "/retort/python/guest.py", "/usr/bin/python3", "/etc/passwd", "/etc/hosts", "/dev/urandom",
                      "/proc/self/root/etc/x", "/proc/1/oom_score_adj"]


def read_attempts(paths):
    return f"""
def read(path):
    if os.path.isdir(path):
        return os.listdir(path)
    with open(path, 'rb') as f:
        return f.read(200)
for path in {paths!r}:
    attempt(path, lambda: read(path))
"""


@pytest.fixture(scope="module")
def reads(attack):
    return attack(read_attempts(HOST_PATHS + PROC_PATHS))[0]


@pytest.mark.parametrize("path", HOST_PATHS)
def test_a_host_path_cannot_be_read(reads, path):
    assert reads[path] in ("ENOENT", "EACCES", "EPERM", "ENOTDIR", "ENXIO")


@pytest.mark.parametrize("path", [p for p in PROC_PATHS if "self/" not in p])
def test_a_path_of_proc_tells_nothing_of_others(reads, path):
    assert reads[path] in ("ENOENT", "EACCES", "EPERM", "ENOTDIR")


def test_physical_addresses_are_not_told(run):
    answer = run("python", """
import ctypes
page = ctypes.create_string_buffer(b'x' * 8192)
with open('/proc/self/pagemap', 'rb') as f:
    f.seek((ctypes.addressof(page) // 4096 + 1) * 8)
    entry = int.from_bytes(f.read(8), 'little')
return [entry >> 63, entry & ((1 << 55) - 1)]""")
    assert not answer["success"] or answer["result"] == [1, 0]  # present, and the frame number hidden


def test_the_directory_of_proc_shows_only_the_cell(attack):
    outcomes, _ = attack("""
outcomes["pids"] = [p for p in os.listdir("/proc") if p.isdigit()]
outcomes["files"] = [p for p in os.listdir("/proc") if not p.isdigit()]
outcomes["self"] = os.getpid()
outcomes["parent"] = os.getppid()""")
    assert len(outcomes["pids"]) <= 2 and str(outcomes["self"]) in outcomes["pids"]
    assert outcomes["self"] < 10 and outcomes["parent"] in (0, 1)
    assert set(outcomes["files"]) <= {"self", "thread-self"}


@pytest.fixture(scope="module")
def writes(attack):
    return attack(f"""
def write(path):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
    return os.write(fd, b'0')
for path in {WRITABLE_ELSEWHERE!r}:
    attempt(path, lambda: write(path))
attempt("remove", lambda: os.unlink("/etc/hosts"))
attempt("rename", lambda: os.rename("/etc/hosts", "/work/hosts"))
attempt("mkdir", lambda: os.mkdir("/x"))
attempt("chmod", lambda: os.chmod("/usr", 0o777))
attempt("utime", lambda: os.utime("/usr"))
attempt("hard link out of the scratch", lambda: os.link("/work/.tmp/../f" if open("/work/f", "w").close() else "/work/f", "/usr/f"))
attempt("hard link into the scratch", lambda: os.link("/usr/bin/id", "/work/id"))
attempt("link that leads out", lambda: (os.symlink("/etc/x", "/work/l"), open("/work/l", "w")))
attempt("truncate", lambda: os.truncate("/etc/hosts", 0))
attempt("replace the scratch", lambda: os.rename("/work", "/work2"))
""")[0]


@pytest.mark.parametrize("name", [*WRITABLE_ELSEWHERE, "remove", "rename", "mkdir", "chmod", "utime",
                                  "hard link out of the scratch", "hard link into the scratch",
                                  "link that leads out", "truncate", "replace the scratch"])
def test_nothing_but_the_scratch_can_be_written(writes, name):
    assert writes[name] in ("EROFS", "EACCES", "EPERM", "ENOENT", "EXDEV", "EBUSY", "EINVAL")


@pytest.mark.parametrize("place", ["/work", "/tmp", "/var/tmp", "/dev/shm", "/work/out"])
def test_the_scratch_and_its_names_can_be_written(run, place):
    answer = run("bash", f"echo hello > {place}/f && cat {place}/f && df {place} | tail -1 | cut -d' ' -f1")
    assert answer["stdout"].split() == ["hello", "scratch"]


def test_one_cell_sees_nothing_of_another(run):
    run("bash", "echo mine > /work/mine; echo mine > /tmp/mine; echo mine > /dev/shm/mine")
    answer = run("bash", "ls -A /work /tmp /dev/shm; ls -A /work/out | wc -l")
    assert "mine" not in answer["stdout"]


def test_no_trace_of_the_scratch_on_the_host(run):
    marker = "trace-" + uuid.uuid4().hex
    run("bash", f"touch /tmp/{marker} /dev/shm/{marker} /work/{marker} /var/tmp/{marker}")
    for place in ("/tmp", "/dev/shm", "/work", "/var/tmp"):
        assert not os.path.exists(os.path.join(place, marker))


# ---- environment and memory ----

# The secret comes in two halves and is never put together, or the scan would find itself.
SCAN = """
head, tail = (half.encode() for half in inputs)
found = []
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as mem:
    for line in maps:
        span, mode = line.split()[:2]
        start, end = (int(x, 16) for x in span.split("-"))
        if "r" not in mode or end >= 1 << 47:
            continue
        try:
            mem.seek(start)
            text = mem.read(end - start)
        except OSError:
            continue
        at = text.find(head)
        while at >= 0:
            if text.startswith(tail, at + len(head)):
                found.append(line)
            at = text.find(head, at + 1)
        del text
"""
HALVES = [SECRET[:20], SECRET[20:]]


@pytest.fixture(scope="module")
def caller():
    return {"SECRET": SECRET, "AWS_SECRET_ACCESS_KEY": SECRET}


def test_the_callers_environment_does_not_reach_python(run, caller):
    answer = run("python", """
import os
return {"environ": dict(os.environ), "proc": open("/proc/self/environ").read()}""", env_of_caller=caller)
    assert SECRET not in json.dumps(answer)


def test_the_callers_environment_does_not_reach_node(run, caller):
    answer = run("javascript", """
return {environ: process.env, proc: require("fs").readFileSync("/proc/self/environ", "utf8")}""",
                 env_of_caller=caller)
    assert answer["success"] and SECRET not in json.dumps(answer)


def test_the_callers_environment_does_not_reach_bash(run, caller):
    answer = run("bash", "env; set; cat /proc/*/environ | tr '\\0' '\\n'", env_of_caller=caller)
    assert "PATH=" in answer["stdout"] and SECRET not in json.dumps(answer)


def test_the_callers_secrets_are_nowhere_in_the_memory_of_the_guest(run, caller):
    answer = run("python", SCAN + "return found", input=HALVES, env_of_caller=caller)
    assert answer["success"] and answer["result"] == []


def test_the_scan_would_find_what_is_there(run):
    answer = run("python", "held = ''.join(inputs).encode()\n" + SCAN + "return len(found)", input=HALVES)
    assert answer["result"] > 0


def test_granted_variables_do_reach_the_code(run):
    answer = run("python", "import os\nreturn os.environ['REGION']", env="REGION=eu")
    assert answer["result"] == "eu"


# ---- descriptors ----

def test_python_has_four_descriptors(run):
    answer = run("python", """
import os
before = os.open("/proc/self/fd", os.O_RDONLY)
return {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir(before) if int(fd) != before
        and os.path.islink(f"/proc/self/fd/{fd}")}""")
    open_here = answer["result"]
    assert sorted(map(int, open_here)) == [0, 1, 2, 3]
    assert all(open_here[fd].startswith("pipe:") for fd in "012") and open_here["3"].startswith("socket:")


def test_node_has_four_descriptors_and_those_of_its_own_loop(run):
    answer = run("javascript", """
const fs = require("fs");
const open = {};
for (const fd of fs.readdirSync("/proc/self/fd")) { try { open[fd] = fs.readlinkSync("/proc/self/fd/" + fd); } catch {} }
return open""")
    open_here = answer["result"]
    others = [target for fd, target in open_here.items() if int(fd) > 3]
    assert all(t.startswith(("anon_inode:[event", "anon_inode:[timerfd", "pipe:", "anon_inode:[io")) or t == "/dev/null"
               or "/proc/" in t for t in others), open_here
    assert sum(t.startswith("socket:") for t in open_here.values()) == 1


def test_bash_and_its_children_have_three_descriptors_and_one_for_the_answer(run):
    answer = run("bash", """ls -l /proc/$$/fd; echo child; python3 -c "
import os
for fd in os.listdir('/proc/self/fd'):
    if os.path.exists(f'/proc/self/fd/{fd}') or os.path.islink(f'/proc/self/fd/{fd}'):
        print(fd, '->', os.readlink(f'/proc/self/fd/{fd}'))" """)
    shell, child = ({line.split(" -> ")[0].split()[-1]: line.split(" -> ")[1] for line in part.splitlines()
                     if " -> " in line} for part in answer["stdout"].split("child\n"))
    assert set(shell) - {"255"} == set(child) == {"0", "1", "2", "9"}  # 255 is bash's own hold on its script
    assert shell["9"] == child["9"] == "/memfd:result (deleted)"
    assert all(shell[fd].startswith("pipe:") for fd in "012")
