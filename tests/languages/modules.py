# SPDX-License-Identifier: Apache-2.0
"""Small WebAssembly modules, put together byte by byte: no compiler is needed to test with them."""

import base64


def leb(n):
    out = b""
    while n > 0x7f:
        out, n = out + bytes([n & 0x7f | 0x80]), n >> 7
    return out + bytes([n])


def vec(*items):
    return leb(len(items)) + b"".join(items)


def text(s):
    return leb(len(s)) + s.encode()


def module(types, imports, exports, code, data=b""):
    """A module of one function; types are of i32 only: (parameters, results)."""
    def section(number, body):
        return bytes([number]) + leb(len(body)) + body
    kinds = [b"\x60" + vec(*[b"\x7f"] * p) + vec(*[b"\x7f"] * r) for p, r in types]
    places = [text("wasi_snapshot_preview1") + text(name) + b"\0" + leb(kind) for name, kind in imports]
    body = b"\0" + code + b"\x0b"
    return base64.b64encode(
        b"\0asm\1\0\0\0" + section(1, vec(*kinds)) + section(2, vec(*places)) + section(3, vec(leb(len(types) - 1)))
        + section(5, b"\1\0\1") + section(7, vec(text("memory") + b"\2\0", *[text(e) + b"\0" + leb(len(imports)) for e in exports]))
        + section(10, vec(leb(len(body)) + body))
        + (section(11, b"\1\0\x41\0\x0b" + leb(len(data)) + data) if data else b"")).decode()


def const(n):
    out = b""
    while n > 0x3f:
        out, n = out + bytes([n & 0x7f | 0x80]), n >> 7
    return b"\x41" + out + bytes([n])


SAID = b'{"hello": "wasm"}\n'
HELLO = module([(4, 1), (0, 0)], [("fd_write", 0)], ["_start"], const(1) + const(0) + const(1) + const(8) + b"\x10\0\x1a",
               (16).to_bytes(4, "little") + len(SAID).to_bytes(4, "little") + bytes(8) + SAID)
EXIT = module([(1, 0), (0, 0)], [("proc_exit", 0)], ["_start"], const(3) + b"\x10\0")
TRAP = module([(0, 0)], [], ["_start"], b"\0")
LOOP = module([(0, 0)], [], ["_start"], b"\x03\x40\x0c\0\x0b")
FILL = module([(0, 0)], [], ["_start"], const(4000) + b"\x40\0\x1a" + const(0) + const(1) + const(4000 << 16) + b"\xfc\x0b\0")
ADD = module([(2, 1)], [], ["add"], b"\x20\0\x20\1\x6a")
# echo: fd_read(0, iovec at 0, 1, 8) then fd_write(1, iovec at 0, 1, 8) of what came
ECHO = module([(4, 1), (0, 0)], [("fd_read", 0), ("fd_write", 0)], ["_start"],
              const(0) + const(0) + const(1) + const(8) + b"\x10\0\x1a" + const(4) + const(8) + b"\x28\2\0" + b"\x36\2\0"
              + const(1) + const(0) + const(1) + const(8) + b"\x10\1\x1a",
              (16).to_bytes(4, "little") + (200).to_bytes(4, "little") + bytes(8))
