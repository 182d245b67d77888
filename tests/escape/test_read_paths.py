# SPDX-License-Identifier: Apache-2.0
"""--read and the three modes of file access: what is granted is seen, and nothing beside it."""

import os
import pathlib
import tempfile

import pytest


@pytest.fixture(scope="module")
def shelf():
    """A directory a cell may be granted, with a neighbour it may not."""
    place = "/srv" if os.access("/srv", os.W_OK) else "/var/tmp"
    with tempfile.TemporaryDirectory(dir=place, prefix="shelf-") as folder:
        root = pathlib.Path(folder)
        root.chmod(0o755)
        (root / "granted").mkdir()
        (root / "granted/data.txt").write_text("granted data")
        (root / "granted/sub").mkdir()
        (root / "granted/sub/deep.txt").write_text("deep")
        (root / "granted/way-out").symlink_to("../private.txt")
        (root / "granted/far-out").symlink_to("/etc/shadow")
        (root / "private.txt").write_text("private data")
        (root / "link").symlink_to(root / "granted")
        (root / "to-proc").symlink_to("/proc")
        yield root


def read(path):
    return f"return open({str(path)!r}).read()"


def test_a_granted_file_can_be_read_at_its_own_place(run, shelf):
    path = shelf / "granted/data.txt"
    assert run("python", read(path), read=path)["result"] == "granted data"


def test_a_granted_directory_shows_what_is_below_it(run, shelf):
    answer = run("bash", f"cat {shelf}/granted/data.txt {shelf}/granted/sub/deep.txt", read=shelf / "granted")
    assert answer["stdout"] == "granted datadeep"


def test_a_neighbour_is_not_visible(run, shelf):
    answer = run("bash", f"ls {shelf}; cat {shelf}/private.txt", read=shelf / "granted")
    assert answer["stdout"].split() == ["granted"] and "private data" not in str(answer)


@pytest.mark.parametrize("name", ["way-out", "far-out", "../private.txt", "sub/../../private.txt"])
def test_no_way_leads_out_of_a_granted_directory(run, shelf, name):
    answer = run("python", read(shelf / "granted" / name), read=shelf / "granted")
    assert not answer["success"] and "private data" not in str(answer["result"])


def test_a_granted_path_cannot_be_written(attack, shelf):
    outcomes, _ = attack(f"""
attempt("write", lambda: open({str(shelf / 'granted/data.txt')!r}, 'a'))
attempt("create", lambda: open({str(shelf / 'granted/new')!r}, 'w'))
attempt("remove", lambda: os.unlink({str(shelf / 'granted/data.txt')!r}))
attempt("rename", lambda: os.rename({str(shelf / 'granted/data.txt')!r}, '/work/x'))
attempt("beside", lambda: open({str(shelf / 'new')!r}, 'w'))
attempt("touch", lambda: os.utime({str(shelf / 'granted/data.txt')!r}))
attempt("mode", lambda: os.chmod({str(shelf / 'granted/data.txt')!r}, 0o777))""", read=shelf / "granted")
    assert all(v in ("EROFS", "EACCES", "EPERM", "EXDEV") for v in outcomes.values()), outcomes
    assert (shelf / "granted/data.txt").read_text() == "granted data" and not (shelf / "new").exists()


@pytest.mark.parametrize("place", ["/tmp", "/var/tmp"])
def test_a_file_below_tmp_can_be_granted(run, place):
    with tempfile.NamedTemporaryFile("w", dir=place, suffix=".txt") as f:
        os.chmod(f.name, 0o644)
        f.write("from tmp")
        f.flush()
        answer = run("python", f"open('/tmp/mine', 'w').write('x')\n{read(f.name)}", read=f.name)
    assert answer["result"] == "from tmp"


def test_tmp_itself_is_granted_or_refused_but_never_silently_empty(retort):
    with tempfile.NamedTemporaryFile("w", dir="/tmp", suffix=".txt") as f:
        os.chmod(f.name, 0o644)
        f.write("from tmp")
        f.flush()
        done = retort("run", "-l", "bash", "-c", f"cat {f.name}", "--read", "/tmp")
    assert done.stdout == "from tmp" or done.status == 2 and "/tmp" in done.stderr


def test_a_link_grants_the_place_it_leads_to(run, shelf):
    answer = run("python", read(shelf / "granted/data.txt"), read=shelf / "link")
    assert answer["result"] == "granted data"


def test_a_relative_path_and_dots_are_taken_from_where_the_caller_stands(retort, shelf):
    for path in ("granted/data.txt", "./granted/../granted/data.txt"):
        done = retort("run", "-l", "python", "-c", read(shelf / "granted/data.txt"), "--read", path, cwd=shelf)
        assert done.stdout == "granted data\n", done.stderr


@pytest.mark.parametrize("path", ["/proc", "/proc/1", "/sys", "/dev", "/dev/null", "/", "/etc/passwd", "/proc/../dev"])
def test_what_belongs_to_the_cell_cannot_be_granted(retort, path):
    done = retort("run", "-l", "bash", "-c", "true", "--read", path)
    assert done.status == 2 and path.split("/")[-1] in done.stderr and "read path" in done.stderr


def test_a_link_to_what_belongs_to_the_cell_cannot_be_granted(retort, shelf):
    done = retort("run", "-l", "bash", "-c", "true", "--read", shelf / "to-proc")
    assert done.status == 2 and "/proc" in done.stderr


def test_a_path_that_is_not_there_is_named(retort):
    done = retort("run", "-l", "bash", "-c", "true", "--read", "/var/tmp/not-there")
    assert done.status == 2 and "/var/tmp/not-there" in done.stderr


def test_a_fifo_or_a_socket_cannot_be_granted(retort, shelf):
    fifo = shelf / "fifo"
    os.mkfifo(fifo)
    done = retort("run", "-l", "bash", "-c", "true", "--read", fifo, timeout=15)
    assert done.status != 0 and "neither a file nor a directory" in done.stderr


def test_many_read_paths_and_one_too_many(retort, shelf, tmp_path_factory):
    paths = []
    for i in range(33):
        path = shelf / f"many{i}"
        path.write_text(str(i))
        paths.append(path)
    flags = [x for p in paths for x in ("--read", p)]
    done = retort("run", "-l", "bash", "-c", f"cat {shelf}/many*", *flags[:64])
    assert done.stdout.strip() == "".join(str(i) for i in sorted(range(32), key=str)), done.stderr
    done = retort("run", "-l", "bash", "-c", "true", *flags)
    assert done.status == 2 and "32 read paths" in done.stderr


# ---- the three modes ----

MODES = """
attempt("read host", lambda: open({path!r}).read())
attempt("write scratch", lambda: open('/work/x', 'w').write('x'))
attempt("write tmp", lambda: open('/tmp/x', 'w').write('x'))
attempt("write shm", lambda: open('/dev/shm/x', 'w').write('x'))
attempt("write out", lambda: open('/work/out/x', 'w').write('x'))
attempt("write host", lambda: open({path!r}, 'a'))
attempt("write null", lambda: open('/dev/null', 'w').write('x'))
attempt("memory file", lambda: os.write(os.memfd_create('x'), b'x'))
"""
WRITES = ["write scratch", "write tmp", "write shm", "write out"]


def test_files_none_sees_no_host_file_and_has_a_scratch(attack, shelf):
    outcomes, _ = attack(MODES.format(path=str(shelf / "granted/data.txt")), files="none")
    assert outcomes["read host"] == "ENOENT" and not outcomes["write host"].startswith("succeeded")
    assert all(outcomes[w] == "succeeded: 1" for w in WRITES)


def test_files_read_only_reads_what_is_granted_and_writes_nothing(attack, shelf):
    path = shelf / "granted/data.txt"
    outcomes, _ = attack(MODES.format(path=str(path)), files="read_only", read=path)
    assert outcomes["read host"] == "succeeded: 'granted data'"
    assert all(outcomes[w] in ("EROFS", "EACCES") for w in [*WRITES, "write host"])


def test_files_sandboxed_reads_what_is_granted_and_writes_the_scratch(attack, shelf):
    path = shelf / "granted/data.txt"
    outcomes, _ = attack(MODES.format(path=str(path)), files="sandboxed", read=path)
    assert outcomes["read host"] == "succeeded: 'granted data'" and outcomes["write host"] in ("EROFS", "EACCES")
    assert all(outcomes[w] == "succeeded: 1" for w in WRITES)


@pytest.mark.parametrize("language, code", [("javascript", "return 6 * 7"), ("bash", "RESULT=42"), ("typescript", "return 6 * 7 as number")])
def test_every_language_runs_where_nothing_can_be_written(run, language, code):
    answer = run(language, code, files="read_only")
    assert answer["result"] == 42, answer["error"]


def test_a_missing_host_file_is_answered_with_the_flag_that_grants_it(run):
    answer = run("python", "open('/srv/data.csv')")
    assert answer["error"]["line"] == 1 and "--read /srv/data.csv" in answer["error"]["hint"]
