# SPDX-License-Identifier: Apache-2.0
"""Calls that concern the host, made raw from Python: each is refused, and the refusal teaches."""

import platform

import pytest

if platform.machine() != "x86_64":
    pytest.skip("the numbers below are those of x86_64", allow_module_level=True)

# name of the attempt: (expression, the call the refusal names, the rule it names)
MOUNTS = {
    "mount a tmpfs": ("syscall(165, b'x', b'/work', b'tmpfs', 0, 0)", "mount(/work)", "mounts"),
    "unmount the scratch directory": ("syscall(166, b'/work', 2)", "umount2(/work)", "mounts"),
    "pivot the root": ("syscall(155, b'/work', b'/work/out')", "pivot_root", "mounts"),
    "change the root": ("os.chroot('/work')", "chroot(/work)", "mounts"),
    "clone a mount tree": ("syscall(428, -100, b'/', 1)", "open_tree", "mounts"),
    "open a file system": ("syscall(430, b'tmpfs', 0)", "fsopen", "mounts"),
    "move a mount": ("syscall(429, -100, b'/work', -100, b'/usr', 0)", "move_mount", "mounts"),
    "make a mount writable": ("syscall(442, -100, b'/', 0, 0, 0)", "mount_setattr", "mounts"),
    "new user namespace": ("syscall(272, 0x10000000)", "unshare", "namespaces"),
    "join a namespace": ("syscall(308, os.open('/proc/self/ns/pid', os.O_RDONLY), 0)", "setns",
                         "namespaces"),
    "new user namespace by clone": ("syscall(56, 0x10000000 | 17, 0, 0, 0, 0)", "clone", ""),
    "new network namespace by clone": ("syscall(56, 0x40000000 | 17, 0, 0, 0, 0)", "clone", ""),
}
DEBUGGING = {
    "trace the first process": ("syscall(101, 16, 1, 0, 0)", "ptrace", "debugging"),
    "be traced": ("syscall(101, 0, 0, 0, 0)", "ptrace", "debugging"),
    "read another's memory": ("syscall(310, 1, 0, 0, 0, 0, 0)", "process_vm_readv", "debugging"),
    "write another's memory": ("syscall(311, 1, 0, 0, 0, 0, 0)", "process_vm_writev", "debugging"),
    "take another's descriptor": ("syscall(438, os.pidfd_open(os.getpid()), 3, 0)", "pidfd_getfd",
                                  "debugging"),
    "compare kernel objects": ("syscall(312, 1, os.getpid(), 0, 0, 0)", "kcmp", "debugging"),
    "advise another's memory": ("syscall(440, os.pidfd_open(os.getpid()), 0, 0, 20, 0)",
                                "process_madvise", "debugging"),
    "open by handle": ("syscall(304, -100, bytes(64), 0)", "open_by_handle_at", ""),
    "name a handle": ("syscall(303, -100, b'/', bytes(64), bytes(8), 0)", "name_to_handle_at", ""),
    "change the personality": ("syscall(135, 0x0040000)", "personality", ""),
    "type into a terminal": ("__import__('fcntl').ioctl(0, 0x5412, b'x')", "ioctl", ""),
    "hide in a console": ("__import__('fcntl').ioctl(0, 0x541c, b'\\3')", "ioctl", ""),
}
KERNEL = {
    "load a BPF program": ("syscall(321, 5, bytes(128), 128)", "bpf", "kernel"),
    "count performance events": ("syscall(298, bytes(128), 0, -1, -1, 0)", "perf_event_open", "kernel"),
    "handle page faults": ("syscall(323, 1)", "userfaultfd", "kernel"),
    "add a key": ("syscall(248, b'user', b'k', b'v', 1, -3)", "add_key", "kernel"),
    "ask for a key": ("syscall(249, b'user', b'k', 0, -3)", "request_key", "kernel"),
    "read a keyring": ("syscall(250, 0, -3, 1)", "keyctl", "kernel"),
    "load another kernel": ("syscall(246, 0, 0, 0, 0)", "kexec_load", "kernel"),
    "load a kernel from a file": ("syscall(320, -1, -1, 0, 0, 0)", "kexec_file_load", "kernel"),
    "load a module": ("syscall(175, bytes(64), 64, b'')", "init_module", "kernel"),
    "load a module from a file": ("syscall(313, 0, b'', 0)", "finit_module", "kernel"),
    "remove a module": ("syscall(176, b'ext4', 0)", "delete_module", "kernel"),
    "restart the host": ("syscall(169, 0xfee1dead, 672274793, 0, 0)", "reboot", "kernel"),
    "ports": ("syscall(172, 3)", "iopl", "kernel"),
    "a port": ("syscall(173, 0x80, 1, 1)", "ioperm", "kernel"),
}
CLOCKS = {
    "rename the host": ("syscall(170, b'owned', 5)", "sethostname", "kernel"),
    "set the clock": ("syscall(227, 0, bytes(16))", "clock_settime", "kernel"),
    "set the time of day": ("syscall(164, bytes(16), 0)", "settimeofday", "kernel"),
    "adjust the clock": ("syscall(159, bytes(256))", "adjtimex", "kernel"),
    "read the kernel's log": ("syscall(103, 3, bytes(64), 64)", "syslog", "kernel"),
    "swap": ("syscall(167, b'/work/x', 0)", "swapon", "kernel"),
    "account processes": ("syscall(163, b'/work/x')", "acct", "kernel"),
    "quotas": ("syscall(179, 0x800002, b'/', 0, 0)", "quotactl", "kernel"),
    "change segments": ("syscall(154, 0, bytes(16), 16)", "modify_ldt", "kernel"),
    "shared memory others could find": ("syscall(29, 4711, 4096, 0o1666)", "shmget", "ipc"),
    "a message queue others could find": ("syscall(68, 4711, 0o1666)", "msgget", "ipc"),
    "a semaphore others could find": ("syscall(64, 4711, 1, 0o1666)", "semget", "ipc"),
    "a named message queue": ("syscall(240, b'q', 0o102, 0o666, 0)", "mq_open", "ipc"),
    "watch the whole file system": ("syscall(300, 0, 0)", "fanotify_init", ""),
}
BATCHES = {"mounts": MOUNTS, "debugging": DEBUGGING, "kernel": KERNEL, "clocks": CLOCKS}
EVERY = [(batch, name) for batch, table in BATCHES.items() for name in table]


@pytest.fixture(scope="module")
def refusals(attack):
    kept = {}

    def of(batch):
        if batch not in kept:
            kept[batch] = attack("\n".join(f"attempt({name!r}, lambda: {row[0]})"
                                           for name, row in BATCHES[batch].items()))
        return kept[batch]

    return of


@pytest.mark.parametrize("batch, name", EVERY)
def test_is_refused(refusals, batch, name):
    outcomes, _ = refusals(batch)
    assert outcomes[name] == "EPERM"


@pytest.mark.parametrize("batch, name", EVERY)
def test_refusal_names_the_call_the_rule_and_what_would_allow_it(refusals, batch, name):
    _, denials = refusals(batch)
    _, call, rule = BATCHES[batch][name]
    found = [d for d in denials if d["call"].startswith(call)]
    assert found, [d["call"] for d in denials]
    assert found[0]["rule"].startswith(rule) and found[0]["rule"]
    assert len(found[0]["allow"]) > 10


QUIET = {
    "new user namespace by clone3": ("syscall(435, (ctypes.c_uint64 * 11)(0x10000000), 88)", "ENOSYS"),
    "a plain process by clone3": ("syscall(435, (ctypes.c_uint64 * 11)(0, 0, 0, 0, 17), 88)", "ENOSYS"),
    "io_uring": ("syscall(425, 8, bytes(120))", "ENOSYS"),
    "an io_uring that is there": ("syscall(426, 3, 1, 1, 0, 0, 0)", "ENOSYS"),
    "another filter with a listener": ("syscall(317, 1, 8, 0)", "EINVAL"),
    "a char device": ("os.mknod('/work/kmsg', 0o20666, os.makedev(1, 11))", "EPERM"),
    "a block device": ("os.mknod('/work/sda', 0o60666, os.makedev(8, 0))", "EPERM"),
    "become root": ("os.setuid(0)", "EPERM"),
    "become the daemon's user": ("os.setresuid(0, 0, 0)", "EPERM"),
    "become somebody": ("os.setresgid(65534, 65534, 65534)", ("EPERM", "EINVAL")),
    "join a group": ("os.setgroups([0])", "EPERM"),
    "give a file to root": ("(open('/work/f', 'w').close(), os.chown('/work/f', 0, 0))", "EPERM"),
    "move the program break of the kernel": ("syscall(157, 35, 1, 0, 0, 0)", ("EPERM", "EINVAL")),
    "raise a capability": ("syscall(157, 47, 2, 21, 0, 0)", ("EPERM", "EINVAL")),
    "unlock securebits": ("syscall(157, 28, 0, 0, 0, 0)", "EPERM"),
    "raise the limit of processes": ("__import__('resource').setrlimit(6, (4000, 4000))",
                                     ("EPERM", "ValueError")),
    "real-time scheduling": ("os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))", "EPERM"),
    "a better place than the others": ("os.setpriority(os.PRIO_PROCESS, 0, -20)", ("EACCES", "EPERM")),
    "be spared by the out-of-memory killer": (
        "os.write(os.open('/proc/self/oom_score_adj', os.O_WRONLY), b'-1000')", ("EACCES", "EPERM")),
    "map ids": ("os.write(os.open('/proc/self/uid_map', os.O_WRONLY), b'0 0 1')", ("EACCES", "EPERM")),
}


@pytest.fixture(scope="module")
def quiet(attack):
    outcomes, denials = attack("\n".join(f"attempt({name!r}, lambda: {row[0]})"
                                         for name, row in QUIET.items()))
    return outcomes


@pytest.mark.parametrize("name", QUIET)
def test_is_refused_without_a_word(quiet, name):
    expected = QUIET[name][1]
    assert quiet[name] in (expected if isinstance(expected, tuple) else (expected,))


OTHER_ABI = '''
import ctypes, mmap, os
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex("%s"))
enter = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
child = os.fork()
if child == 0:
    os._exit(7 if enter() >= 0 else 8)
_, status = os.waitpid(child, 0)
return [os.WIFSIGNALED(status), os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)]
'''


@pytest.mark.parametrize("machine_code", [
    pytest.param("b8140000 00cd80 c3", id="int 0x80"),               # mov eax, getpid32; int 0x80
    pytest.param("b827000040 0f05 c3", id="x32"),                    # mov eax, x32 getpid; syscall
])
def test_system_calls_of_another_abi_end_the_process(run, machine_code):
    answer = run("python", OTHER_ABI % machine_code.replace(" ", ""))
    was_killed, signal = answer["result"]
    assert was_killed and signal in (31, 11)


def test_calls_stay_refused_after_tens_of_thousands_of_tries(run):
    answer = run("python", """
import ctypes, collections
libc = ctypes.CDLL(None, use_errno=True)
seen = collections.Counter()
for i in range(30000):
    assert libc.syscall(165, b'x', b'/work', b'tmpfs', 0, 0) == -1
    seen[ctypes.get_errno()] += 1
return seen""")
    assert answer["success"]
    assert set(answer["result"]) <= {"1", "38"} and sum(answer["result"].values()) == 30000
    assert len(answer["denials"]) == 1


def test_a_child_handed_to_our_parent_leaves_nothing_unreaped(run, retort):
    """clone(CLONE_PARENT) makes a process whose parent is outside the cell."""
    code = """
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
for i in range(3):
    if libc.syscall(56, 0x00008000 | 17, 0, 0, 0, 0) == 0:
        os._exit(0)
time.sleep(0.02)
return 1"""
    done = retort("run", "-l", "python", "-c", code, "--repeat", "120", "--json", timeout=20)
    assert done.status in (0, 1), done.stderr
    assert '"runs":120' in done.stdout


SETUID = """
cp /usr/bin/id /work/id; chmod u+s,g+s /work/id
echo "copy:$(/work/id -u):$(/work/id -ru)"
echo "su:$(su -c id root 2>&1 </dev/null | head -c 80)"
echo "mount:$(mount -t tmpfs x /work/out 2>&1 | head -c 80)"
echo "passwd:$(passwd -d root 2>&1 </dev/null | head -c 80)"
echo "unshare:$(unshare -U id -u 2>&1 | head -c 80)"
echo "unshare-all:$(unshare -Urmpf id -u 2>&1 | head -c 80)"
echo "nsenter:$(nsenter -t 1 -m id -u 2>&1 | head -c 80)"
echo "chroot:$(chroot /work /bin/true 2>&1 | head -c 80)"
echo "caps:$(grep Cap /proc/self/status | tr -d '\\n\\t' )"
echo "nnp:$(grep NoNewPrivs /proc/self/status | tr -dc 0-9)"
"""


@pytest.fixture(scope="module")
def setuid(run):
    text = run("bash", SETUID)["stdout"]
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


@pytest.mark.parametrize("program", ["su", "mount", "passwd", "unshare", "unshare-all", "nsenter", "chroot"])
def test_a_privileged_program_has_no_privilege(setuid, program):
    said = setuid[program].lower()
    assert said and said != "0" and "uid=0" not in said
    assert any(word in said for word in ("not permitted", "denied", "failure", "cannot", "must be",
                                         "failed", "not found", "abort", "requires", "may not"))


def test_a_set_user_id_copy_stays_the_same_user(setuid):
    assert setuid["copy"] == "1000:1000"


def test_no_capability_is_left(setuid):
    assert setuid["caps"].count("0000000000000000") == 5 and setuid["nnp"] == "1"


def test_a_child_cannot_be_handed_to_the_warden_nor_our_guard_be_starved(run):
    answer = run("python", """
import ctypes, errno, os, resource
libc = ctypes.CDLL(None, use_errno=True)
def tried(call, *args):
    done = libc.syscall(call, *args)
    if done == 0 and call == 56:
        os._exit(0)
    return errno.errorcode.get(ctypes.get_errno(), "none") if done < 0 else "done"
limit = (ctypes.c_ulong * 2)(3, 3)
return {"clone(CLONE_PARENT)": tried(56, 0x8000 | 17, 0, 0, 0, 0),
        "prlimit of process 1": tried(302, 1, resource.RLIMIT_NOFILE, limit, 0),
        "setpriority of the user": tried(141, 2, 0, 19),
        "sched_setaffinity of 1": tried(203, 1, 8, limit),
        "an MPTCP socket": tried(41, 2, 1, 262)}
""")
    assert set(answer["result"].values()) == {"EPERM"}, answer["result"]


def test_cpu_time_of_many_processes_is_named_as_the_limit(run):
    answer = run("bash", "for i in 1 2 3 4; do (while :; do :; done) & done; wait", cpu="1s", timeout="20s")
    assert answer["status"] == "TIMEOUT" and answer["error"]["limit"] == "cpu"
