# SPDX-License-Identifier: Apache-2.0
"""What is left in out/ comes back; what only pretends to be in out/ does not."""

import base64
import hashlib
import os

import pytest


def names(answer):
    return [a["name"] for a in answer["artifacts"]]


def text_of(artifact):
    return base64.b64decode(artifact["base64"])


TRICKS = """
import os, socket
os.chdir('/work/out')
open('honest.txt', 'w').write('hello')
os.symlink('/etc/passwd', 'link')
os.symlink('/etc', 'linked-dir')
os.symlink('/proc/self/environ', 'magic')
os.symlink('honest.txt', 'link-inside')
os.symlink('..', 'up')
os.symlink('/proc/1/root', 'root')
os.mkfifo('fifo')
os.mknod('sock', 0o140666)
os.mkdir('dir'); os.mkdir('dir/deep'); open('dir/deep/file', 'w').write('deep')
os.mkdir('secret', 0o000)
open('unreadable', 'w').write('mine'); os.chmod('unreadable', 0)
open('/work/elsewhere', 'w').write('elsewhere'); os.link('/work/elsewhere', 'hard')
open('new\\nline', 'w').write('n')
open('quote" and \\\\ back', 'w').write('q')
open('..hidden', 'w').write('h')
open('tab\\tbell\\x07esc\\x1b[2J', 'w').write('t')
open(b'bad-\\xff\\xfe-utf8', 'w').write('b')
open('é-ü', 'w').write('u')
open('x' * 255, 'w').write('long')
open('empty', 'w')
"""


@pytest.fixture(scope="module")
def tricks(run):
    answer = run("python", TRICKS)
    assert answer["success"], answer["error"]
    return answer


def test_honest_files_come_back_whole(tricks):
    files = {a["name"]: a for a in tricks["artifacts"]}
    assert text_of(files["honest.txt"]) == b"hello" and files["honest.txt"]["size"] == 5
    assert files["honest.txt"]["sha256"] == hashlib.sha256(b"hello").hexdigest()
    assert files["honest.txt"]["type"] == "text/plain"
    assert text_of(files["dir/deep/file"]) == b"deep"
    assert text_of(files["hard"]) == b"elsewhere"
    assert files["empty"]["size"] == 0 and text_of(files["empty"]) == b""


@pytest.mark.parametrize("name", ["link", "linked-dir", "linked-dir/passwd", "magic", "link-inside", "up", "up/elsewhere",
                                  "root", "fifo", "sock"])
def test_a_link_or_a_special_file_does_not_come_back(tricks, name):
    assert not [n for n in names(tricks) if n == name or n.startswith(name + "/")]


@pytest.mark.parametrize("name", ["new\nline", 'quote" and \\ back', "..hidden", "é-ü", "x" * 255, "tab\tbell\x07esc\x1b[2J"])
def test_odd_names_come_back_as_they_are(tricks, name):
    assert name in names(tricks)


def test_names_come_in_order(tricks):
    assert [n.encode(errors="replace") for n in names(tricks)] == sorted(n.encode(errors="replace") for n in names(tricks))


def test_odd_names_on_a_terminal_do_not_act_on_it(retort):
    done = retort("run", "-l", "python", "-c", "open('out/x\\x1b[2J\\x07\\ny', 'w')")
    assert "\x1b" not in done.stderr and "\x07" not in done.stderr


def test_saved_files_stay_below_the_directory(retort, tmp_path):
    done = retort("run", "-l", "python", "-c", TRICKS, "--out", tmp_path / "deep/kept")
    assert done.status == 0, done.stderr
    kept = tmp_path / "deep/kept"
    assert (kept / "honest.txt").read_text() == "hello" and (kept / "dir/deep/file").read_text() == "deep"
    everything = [p for p in tmp_path.rglob("*")]
    assert not any(p.is_symlink() or p.is_fifo() for p in everything)
    assert {p.name for p in tmp_path.iterdir()} == {"deep"} and not (kept / "link").exists()


def test_a_saved_file_does_not_follow_a_link_that_waits_there(retort, tmp_path):
    target = tmp_path / "precious"
    target.write_text("precious")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/report.txt").symlink_to(target)
    retort("run", "-l", "bash", "-c", "echo evil > out/report.txt", "--out", tmp_path / "kept")
    assert target.read_text() == "precious"


def test_out_replaced_by_a_link_brings_nothing_back(run):
    answer = run("bash", "rmdir out; ln -s /etc out; echo done")
    assert answer["success"] and answer["artifacts"] == []


def test_out_replaced_by_a_file_brings_nothing_back(run):
    answer = run("bash", "rmdir out; echo x > out; echo done")
    assert answer["success"] and answer["artifacts"] == []


def test_a_closed_out_still_comes_back(run):
    answer = run("bash", "echo x > out/f; chmod 0 out/f out; echo done")
    assert answer["success"] and names(answer) == ["f"]


def test_a_huge_sparse_file_is_told_of_and_not_brought(run):
    answer = run("bash", "truncate -s 200M out/sparse; echo small > out/small; echo done", wait=20)
    files = {a["name"]: a for a in answer["artifacts"]}
    assert files["sparse"]["truncated"] is True and files["sparse"]["size"] == 200 << 20 and "base64" not in files["sparse"]
    assert text_of(files["small"]) == b"small\n"


def test_ten_thousand_files_do_not_flood_the_caller(run):
    answer = run("python", "for i in range(10000): open(f'out/{i:05}', 'w').write('x')\nreturn 1", wait=30)
    assert answer["result"] == 1 and len(answer["artifacts"]) == 100 and answer["seconds"] < 15


def test_a_maze_of_directories_ends(run):
    answer = run("python", """
import os
os.chdir('/work/out')
for i in range(400):
    os.mkdir('d'); os.chdir('d')
open('deep', 'w').write('x')
os.chdir('/work/out')
for i in range(20000): os.mkdir(f'e{i}')
return 1""", wait=30)
    assert answer["result"] == 1 and answer["seconds"] < 15


def test_files_that_change_while_they_are_read(run):
    answer = run("python", """
import os, time
if os.fork() == 0:
    while True:
        for i in range(50):
            try:
                if os.path.islink(f'out/f{i}'): os.unlink(f'out/f{i}')
                open(f'out/f{i}', 'w').write('x' * 100000)
                os.unlink(f'out/f{i}'); os.symlink('/etc/passwd', f'out/f{i}')
            except OSError: pass
time.sleep(0.2)
return 1""", wait=30)
    assert answer["result"] == 1
    assert not any(b"root:" in text_of(a) for a in answer["artifacts"] if "base64" in a)


def test_artifacts_of_a_failed_run_come_back_too(run):
    answer = run("python", "open('out/partial', 'w').write('x')\nraise ValueError('later')")
    assert not answer["success"] and names(answer) == ["partial"]


def test_artifacts_of_a_run_that_timed_out_do_no_harm(run):
    answer = run("bash", "echo x > out/f; sleep 20", timeout="400ms")
    assert answer["status"] == "TIMEOUT" and names(answer) in ([], ["f"])
