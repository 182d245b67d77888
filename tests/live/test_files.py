# SPDX-License-Identifier: Apache-2.0
"""Files of a session from outside, while hostile code arranges the scratch directory."""

import pytest

from .conftest import Refused


def refused(code, words, call, *args):
    with pytest.raises(Refused) as caught:
        call(*args)
    assert caught.value.code == code and words in caught.value.message, caught.value


def test_files_go_in_and_come_out(a):
    a.write("in/deep/data.txt", "hello \u20ac")
    assert a.value("open('in/deep/data.txt').read()") == "hello \u20ac"
    assert a.value("import os; s = os.stat('in/deep/data.txt'); return [s.st_uid, s.st_mode & 0o777]") == [1000, 0o644]
    assert a.value("open('in/deep/data.txt', 'a').write('!'); os.rename('in/deep', 'in/moved'); return 1") == 1
    assert a.read("in/moved/data.txt") == "hello \u20ac!"
    a.write("in/moved/data.txt", "")
    assert a.read("in/moved/data.txt") == ""
    assert a.names() == ["in", "in/moved", "in/moved/data.txt", "out"]
    assert a.names("in/moved") == ["in/moved/data.txt"]
    a.remove("in")
    assert a.names() == ["out"]


def test_a_file_can_be_read_while_a_run_is_under_way(a):
    run = a.start("import os, time\nopen('part', 'w').write('1'); os.rename('part', 'ready')\nwhile not os.path.exists('go'): time.sleep(0.01)")
    while "ready" not in a.names():
        pass
    assert a.read("ready") == "1"
    a.write("go", "")
    assert run()["outcome"]["success"]


def test_what_nobody_may_read_can_be_read_by_its_owner(a):
    a.run("import os; open('secret', 'w').write('s'); os.chmod('secret', 0); os.mkdir('d'); os.chmod('d', 0)")
    assert a.read("secret") == "s"
    a.write("d/x", "1")
    a.remove("d")


@pytest.mark.parametrize("path", ["", "/etc/passwd", "..", "../x", "a/../b", "a//b", "./a", "a/", "x" * 5000])
def test_a_path_that_is_none_is_refused(a, path):
    for call in (lambda: a.write(path, "x"), lambda: a.read(path), lambda: a.remove(path)):
        refused("invalid", "", call)


def test_no_link_leads_anywhere(a):
    a.run("import os\nos.symlink('/', 'evil'); os.symlink('/etc/passwd', 'file'); os.symlink('..', 'up')\n"
          "os.symlink('/proc/self/root', 'magic'); os.symlink('real', 'inner'); os.mkdir('real'); open('real/f', 'w').write('1')")
    for path in ("evil/etc/passwd", "file", "up/etc/passwd", "magic/etc/passwd", "inner/f"):
        refused("denied", "leads through a link", a.read, path)
    for path in ("evil/tmp/x", "up/x", "inner/x"):
        refused("denied", "leads through a link", a.write, path, "x")
    a.write("file", "replaced")  # the link itself gives way; what it led to is untouched
    assert a.read("file") == "replaced"
    assert a.value("open('/etc/passwd').read()")[:4] == "root"
    a.remove("inner")
    a.remove("evil")
    assert a.names() == ["file", "out", "real", "real/f"]


def test_what_is_no_file_is_not_opened(a):
    a.run("import os; os.mkfifo('pipe'); os.mkdir('dir')")
    refused("invalid", "no ordinary file", a.read, "pipe")
    refused("invalid", "is a directory", a.read, "dir")
    refused("invalid", "is a directory", a.write, "dir", "x")
    refused("not_found", "there is no 'missing'", a.read, "missing")
    refused("not_found", "there is no 'missing'", a.remove, "missing")
    refused("invalid", "no directory", a.read, "pipe/x")
    a.write("pipe", "now a file")
    assert a.read("pipe") == "now a file"


def test_links_renamed_under_our_feet_lead_nowhere(a):
    run = a.start("import os, time\nos.mkdir('d'); open('d/passwd', 'w').write('mine'); os.symlink('/etc', 'l')\n"
                  "end = time.time() + 2\nwhile time.time() < end and not os.path.exists('stop'):\n"
                  "    os.rename('d', 't'); os.rename('l', 'd'); os.rename('d', 'l'); os.rename('t', 'd')")
    seen = set()
    for _ in range(500):
        try:
            seen.add(a.read("d/passwd"))
        except Refused as why:
            seen.add(why.code)
    a.write("stop", "")
    run()
    assert "mine" in seen and not any("root" in text for text in seen), seen


def test_the_limit_of_the_scratch_directory_is_named(house):
    a = house.open(scratch="1M")
    refused("limit", "the scratch directory is full", a.write, "big", "x" * (2 << 20))
    assert a.names() == ["out"], "nothing half-written stays"
    a.write("small", "x" * 1000)
    a.close()


def test_a_listing_has_an_end(a):
    a.run("import os\nos.mkdir('many')\nfor i in range(10001): open(f'many/{i}', 'w').close()")
    refused("limit", "more than 10000 files", a.list, "many")
    a.remove("many")
    assert a.names() == ["out"]


def test_a_read_only_scratch_directory_stays_so(house):
    a = house.open(files="read_only")
    refused("denied", "read-only", a.write, "x", "1")
    a.close()
