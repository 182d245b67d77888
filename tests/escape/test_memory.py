# SPDX-License-Identifier: Apache-2.0
"""Memory, scratch and output: what grows meets its limit, and the limit is named."""

import pytest

MB = 1 << 20
BOMBS = {
    "a python list": ("python", "x = []\nwhile True: x.append('y' * 100000)"),
    "a python bytearray": ("python", "x = bytearray(400 << 20)\nreturn len(x)"),
    "touched mappings": ("python", """
import mmap
held = []
while True:
    m = mmap.mmap(-1, 1 << 20)
    for i in range(0, 1 << 20, 4096): m[i] = 1
    held.append(m)"""),
    "shared mappings": ("python", """
import mmap
held = []
while True:
    m = mmap.mmap(-1, 1 << 20, mmap.MAP_SHARED)
    for i in range(0, 1 << 20, 4096): m[i] = 1
    held.append(m)"""),
    "memory files": ("python", """
import os
fds = []
while True:
    fd = os.memfd_create('x'); fds.append(fd)
    os.write(fd, b'x' * (1 << 20))"""),
    "node objects": ("javascript", "const x = []; for (;;) x.push(new Array(10000).fill(Math.random()))"),
    "node buffers": ("javascript", "const x = []; for (;;) x.push(Buffer.alloc(1 << 20, 1))"),
    "a node string": ("javascript", "let s = 'x'.repeat(1 << 20); const x = []; for (let i = 0; ; i++) x.push(Buffer.from(s + i))"),
    "typescript": ("typescript", "const x: Uint8Array[] = []; for (;;) x.push(new Uint8Array(1 << 20).fill(1))"),
    "a bash variable": ("bash", "x=$(printf 'y%.0s' {1..100000}); while :; do x=$x$x; done"),
    "many processes together": ("bash", "for i in 1 2 3 4 5 6 7 8; do python3 -c 'x = bytearray(40 << 20); x[::4096] = b\"1\" * len(x[::4096]); "
                                        "import time; time.sleep(20)' & done; wait -n; exit $?"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_memory_bomb_meets_its_limit(run, name):
    language, code = BOMBS[name]
    answer = run(language, code, memory="128M", timeout="15s", wait=40)
    assert not answer["success"]
    assert answer["metrics"]["memoryPeakBytes"] <= 132 * MB
    assert answer["status"] == "MEMORY_ERROR", answer["error"]
    assert answer["exit_status"] == 137
    assert answer["error"]["type"] == "MemoryError" and answer["error"]["limit"] == "memory"
    assert "128MB" in answer["error"]["message"] and "--memory" in answer["error"]["hint"]


@pytest.mark.parametrize("place", ["/work", "/tmp", "/dev/shm"])
def test_files_in_the_scratch_count_as_memory(run, place):
    answer = run("bash", f"head -c 200M /dev/zero > {place}/fill; echo $? >&2; rm -f {place}/fill; exit 3", memory="64M",
                 scratch="1G", timeout="20s")
    assert not answer["success"] and answer["metrics"]["memoryPeakBytes"] <= 68 * MB


@pytest.mark.parametrize("place", ["/work", "/tmp", "/dev/shm", "/work/out"])
def test_the_scratch_has_a_size(run, place):
    answer = run("python", f"""
import errno, os
written = 0
try:
    with open('{place}/fill', 'wb', 0) as f:
        while True: written += f.write(b'x' * 65536)
except OSError as e:
    code = errno.errorcode[e.errno]
os.unlink('{place}/fill')
return [written, code]""", scratch="8M")
    written, code = answer["result"]
    assert 6 * MB <= written <= 8 * MB and code in ("ENOSPC", "EFBIG")


def test_the_three_places_share_one_size(run):
    answer = run("bash", "for d in /work /tmp /dev/shm; do head -c 4M /dev/zero > $d/f; done; du -sk /work | cut -f1",
                 scratch="8M")
    assert int(answer["stdout"].split()[-1]) <= 8 * 1024


def test_the_scratch_has_a_number_of_files(run):
    answer = run("python", """
import errno, os
made = 0
try:
    while made < 200000:
        os.close(os.open(f'/work/f{made}', os.O_CREAT | os.O_WRONLY)); made += 1
except OSError as e:
    return [made, errno.errorcode[e.errno]]
return [made, None]""", scratch="4M", memory="512M")
    made, code = answer["result"]
    assert made <= 4 * MB // 4096 + 64 and code == "ENOSPC"


def test_a_full_scratch_is_named_as_the_limit(run):
    answer = run("python", "open('big', 'wb').write(b'x' * (20 << 20))", scratch="4M")
    assert answer["error"]["type"] == "ResourceLimitError" and answer["error"]["limit"] == "scratch"
    assert "--scratch" in answer["error"]["hint"]


@pytest.mark.parametrize("language, code", [
    ("python", "while True: print('x' * 10000)"),
    ("python", "import sys\nwhile True: sys.stderr.write('x' * 10000)"),
    ("javascript", "for (;;) console.log('x'.repeat(10000))"),
    ("bash", "yes"),
    ("bash", "yes >&2 & yes & wait"),
    ("python", "import os\nfor i in range(8):\n    if os.fork() == 0: break\nwhile True: os.write(1 + i % 2, b'x' * 65536)"),
])
def test_a_flood_of_output_is_cut_and_named(run, language, code):
    answer = run(language, code, output="64K", timeout="10s")
    assert answer["status"] == "FAILED" and answer["seconds"] < 8
    assert answer["error"]["type"] == "ResourceLimitError" and answer["error"]["limit"] == "output"
    assert len(answer["stdout"]) + len(answer["stderr"]) <= 64 << 10 and answer["truncated"] is True
    assert "--output" in answer["error"]["hint"]


@pytest.mark.parametrize("language, code", [
    ("python", "return 'x' * 3000000"), ("javascript", "return 'x'.repeat(3000000)"),
])
def test_an_answer_over_the_output_limit_is_refused_by_name(run, language, code):
    answer = run(language, code, output="1M")
    assert answer["error"]["type"] == "ResourceLimitError" and answer["error"]["limit"] == "output"
    assert answer["result"] is None


def test_a_child_out_of_memory_is_not_the_end_of_code_that_copes(run):
    answer = run("python", """
import subprocess
p = subprocess.run(["python3", "-c", "import mmap; m = mmap.mmap(-1, 400 << 20); m[::4096] = b'1' * len(m[::4096])"])
return {"error": "the child died", "status": p.returncode}""", memory="128M")
    assert answer["status"] == "SUCCESS", answer["error"]
    assert answer["result"] == {"error": "the child died", "status": -9}


def test_memory_is_free_again_for_the_next_run(retort):
    done = retort("run", "-l", "python", "-c", "x = bytearray(60 << 20); x[::4096] = b'1' * len(x[::4096])\nreturn 1",
                  "--memory", "128M", "--repeat", "20", "--json")
    assert '"failed":0' in done.stdout, done.stdout + done.stderr
