# SPDX-License-Identifier: Apache-2.0
"""Sessions and branches of JavaScript and TypeScript."""

import pytest

from .conftest import Refused


@pytest.fixture
def n(house):
    session = house.open("javascript")
    yield session
    session.close()


def test_declarations_imports_and_files_stay(n):
    n.run("const a = 1; let b = [2]; function f() { return a + b[0] }\nimport { join } from 'path'\nclass K { static s = 7 }\n"
          "const later = await Promise.resolve(5); require('fs').writeFileSync('f', 'kept')")
    assert n.value("[a, b, f(), join('x', 'y'), K.s, later, require('fs').readFileSync('f', 'utf8')]") == [1, [2], 3, "x/y", 7, 5, "kept"]
    assert n.value("enum E { A = 4 }; const t: number = a; return t + E.A", language="typescript") == 5
    assert n.value("E.A") == 4


def test_each_run_has_its_own_input_stdin_and_output(n):
    assert n.value("return [k, require('fs').readFileSync(0, 'utf8')]", input={"k": 1}, stdin="one") == [1, "one"]
    assert n.value("return [k, require('fs').readFileSync(0, 'utf8')]", input={"k": 2}, stdin="two") == [2, "two"]
    read = "let all = ''; for await (const part of process.stdin) all += part; return all"
    assert [n.value(read, stdin=text) for text in ("three", "", "four")] == ["three", "", "four"]
    assert n.run("console.log('only here')")["stdout"] == "only here\n"
    assert n.run("1")["stdout"] == ""


def test_an_error_does_not_end_it(n):
    n.run("const x = 1")
    assert n.run("null.x")["error"]["name"] == "TypeError"
    assert n.run("process.exit(3)")["error"]["name"] == "SystemExit"
    assert n.run("await new Promise(() => {})")["error"]["message"].startswith("the code awaits something")
    assert n.value("x") == 1


@pytest.mark.parametrize("code", ["while (true) {}", "await new Promise((r) => setTimeout(r, 30000))", "for (;;) await null",
                                  "setTimeout(() => { while (true) {} }, 1); await new Promise((r) => setTimeout(r, 9000))",
                                  "try { while (true) {} } catch {} finally { while (true) {} }"])
def test_a_run_that_takes_too_long_is_interrupted_and_the_session_stays(n, code):
    n.run("const x = 5")
    outcome = n.run(code, policy={"timeout": "200ms"})
    assert outcome["status"] == "TIMEOUT" and outcome["metrics"]["executionTimeMs"] < 1500
    assert n.is_alive() and n.value("x") == 5
    assert n.value("await new Promise((r) => setTimeout(r, 2, 6))") == 6


def test_code_that_cannot_be_interrupted_ends_its_session(house):
    n = house.open("javascript")
    outcome = n.run("require('child_process').execSync('sleep 30')", policy={"timeout": "100ms"})
    assert outcome["status"] == "TIMEOUT" and not n.is_alive()
    n.close()


def test_out_of_memory_ends_it_and_says_so(house):
    n = house.open("javascript", memory="96M")
    b = n.branch()
    outcome = b.run("const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1))", policy={"memory": "96M"})
    assert outcome["status"] == "MEMORY_ERROR" and outcome["error"]["message"].endswith("the session has ended")
    assert not b.is_alive() and n.value("1 + 1", policy={"memory": "96M"}) == 2
    b.close()
    n.close()


def test_too_large_an_answer_does_not_end_it(n):
    assert "write it to a file" in n.run("'x'.repeat(100000)", policy={"output": "10K"})["error"]["message"]
    assert n.value("1 + 1") == 2


def test_a_branch_has_everything_and_shares_nothing(n):
    n.run("const m = new Map([[1, { a: 2 }]]); const big = Array.from({ length: 100000 }, (_, i) => ({ i }))\n"
          "const hot = (x) => { let s = 0; for (let i = 0; i < x; i++) s += i; return s }; hot(1e6)\n"
          "const fsp = require('fs/promises'); await fsp.writeFile('f', 'n')\nprocess.chdir('/tmp')")
    b, c = n.branch(), n.branch()
    step = "m.get(1).a += %d; await fsp.appendFile('/work/f', '%s'); return [m.get(1).a, big.length, await fsp.readFile('/work/f', 'utf8'), hot(1000), process.cwd(), process.pid]"
    assert b.value(step % (10, "b")) == [12, 100000, "nb", 499500, "/work/.tmp", 2]
    assert n.value(step % (1, "!")) == [3, 100000, "n!", 499500, "/work/.tmp", 2]
    assert c.value(step % (20, "c")) == [22, 100000, "nc", 499500, "/work/.tmp", 2]
    b.close()
    c.close()


def test_a_branch_of_a_branch_outlives_both_and_collects_its_garbage(house):
    n = house.open("javascript")
    n.run("const keep = Array.from({ length: 50000 }, (_, i) => ({ i })); const fsp = require('fs/promises'); await fsp.readdir('.')")
    b = n.branch()
    c = b.branch()
    n.close()
    b.close()
    assert c.value("let s = 0; for (let k = 0; k < 20; k++) s += Array.from({ length: 100000 }, (_, i) => ({ i })).length\n"
                   "await fsp.writeFile('x', 'y'); await new Promise((r) => setTimeout(r, 5)); return [s, keep[7].i]") == [2000000, 7]
    assert c.run("while (true) {}", policy={"timeout": "100ms"})["status"] == "TIMEOUT" and c.is_alive()
    assert c.value("require('child_process').execSync('echo child').toString()") == "child\n"
    assert c.value("const { gzipSync, gunzip } = require('zlib'); return (await require('util').promisify(gunzip)(gzipSync('z'))).toString()") == "z"
    c.close()


def test_random_numbers_are_not_the_same_in_two_branches(n):
    draw = "return [Math.random(), crypto.randomUUID(), require('crypto').randomInt(2 ** 40), require('crypto').randomBytes(8).toString('hex')]"
    n.run(draw)
    drawn = []
    for _ in range(2):
        b = n.branch()
        drawn.append(b.value(draw))
        assert b.value("const all = Array.from({ length: 1000 }, Math.random); return all.every((x) => x >= 0 && x < 1) && new Set(all).size") == 1000
        b.close()
    drawn.append(n.value(draw))
    for values in zip(*drawn):
        assert len(set(values)) == 3, values


@pytest.mark.parametrize("code, words", [
    ("globalThis.h = await require('fs/promises').open('/work/data', 'w')", "the open file /work/data"),
    ("globalThis.c = require('child_process').spawn('sleep', ['60'])", "the process 'sleep'"),
    ("globalThis.k = new (require('worker_threads').Worker)('setInterval(() => {}, 1000)', { eval: true }); k.unref()", "a worker thread"),
    ("globalThis.w = require('fs').watch('/work', () => {}); w.unref()", "inotify"),
])
def test_what_cannot_be_copied_is_named(house, code, words):
    n = house.open("javascript")
    assert n.run(code + "; return 1")["success"]
    with pytest.raises(Refused) as caught:
        n.branch()
    assert caught.value.code == "conflict" and words in caught.value.message, caught.value
    assert n.value("1") == 1
    n.close()


def test_a_branch_is_sealed_like_any_cell(n):
    b = n.branch()
    look = "Object.fromEntries(require('fs').readFileSync('/proc/self/status', 'utf8').trim().split('\\n').map((l) => l.split(':\\t')))"
    theirs, ours = b.value(look), n.value(look)
    for key in ("CapPrm", "CapEff", "CapBnd", "Seccomp", "Seccomp_filters", "NoNewPrivs", "TracerPid", "Uid", "Gid", "NSpid"):
        assert theirs[key] == ours[key], key
    assert theirs["CapBnd"] == "0" * 16 and theirs["Seccomp"] == "2"
    assert b.value("require('fs').readdirSync('/proc/self/fd').map((fd) => { try { return require('fs').readlinkSync('/proc/self/fd/' + fd) } "
                   "catch { return '' } }).filter((to) => to.startsWith('/'))") == ["/memfd:stdin (deleted)"]
    denied = b.run("try { await fetch('http://192.0.2.7') } catch {} return 1")
    assert denied["success"] and n.run("1")["denials"] == []
    b.close()
