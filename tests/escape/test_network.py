# SPDX-License-Identifier: Apache-2.0
"""Every way out by a socket. No attempt leaves the machine: the cell has no interface that is up."""

import http.server
import subprocess
import threading

import pytest

CONNECTS = {
    "TCP": ("socket.create_connection(('192.0.2.1', 80), 2)", "connect(192.0.2.1:80)"),
    "TCP over IPv6": ("socket.socket(socket.AF_INET6).connect(('2001:db8::1', 443))", "connect([2001:db8::1]:443)"),
    "loopback": ("socket.create_connection(('127.0.0.1', PORT), 2)", "connect(127.0.0.1:"),
    "loopback over IPv6": ("socket.socket(socket.AF_INET6).connect(('::1', 8))", "connect([::1]:8)"),
    "UDP": ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.2', 53))", "sendto(192.0.2.2:53)"),
    "UDP on loopback": ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))", "sendto(127.0.0.1:"),
    "a cloud's metadata": ("socket.create_connection(('169.254.169.254', 80), 2)", "connect(169.254.169.254:80)"),
    "listen": ("socket.socket().listen()", "listen"),
    "bind": ("socket.socket().bind(('127.0.0.1', 8080))", "bind(127.0.0.1:8080)"),
    "raw IP": ("socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)", "socket(AF_INET)"),
    "packets": ("socket.socket(socket.AF_PACKET, socket.SOCK_RAW)", "socket(AF_PACKET)"),
    "vsock": ("socket.socket(40, socket.SOCK_STREAM)", "socket(another family)"),
    "a datagram pair, which can bind itself": ("socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)", "socketpair(AF_UNIX)"),
}
QUIET = {
    "a unix socket": ("socket.socket(socket.AF_UNIX).connect('/run/x')", {"EPERM"}),
    "an abstract socket": ("socket.socket(socket.AF_UNIX).bind('\\0retort')", {"EPERM"}),
    "netlink": ("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)", {"EAFNOSUPPORT"}),
    "kernel crypto": ("socket.socket(38, socket.SOCK_SEQPACKET)", {"EPERM"}),
    "bluetooth": ("socket.socket(31, socket.SOCK_RAW)", {"EPERM"}),
    "a stream pair that binds itself": ("socket.socketpair()[0].bind('\\0retort')", {"EPERM"}),
    "a stream pair that connects elsewhere": ("socket.socketpair()[0].connect('\\0retort')", {"EPERM"}),
    "UDP by sendmsg": ("socket.socket(2, 2).sendmsg([b'x'], [], 0, ('127.0.0.1', PORT))", {"EPERM", "ENETUNREACH"}),
    "UDP by sendmsg to elsewhere": ("socket.socket(2, 2).sendmsg([b'x'], [], 0, ('192.0.2.9', 53))", {"EPERM", "ENETUNREACH"}),
    "UDP over IPv6 by sendmsg": ("socket.socket(10, 2).sendmsg([b'x'], [], 0, ('::1', 5))", {"EPERM", "ENETUNREACH", "EADDRNOTAVAIL"}),
    "TCP fast open by sendmsg": ("socket.socket().sendmsg([b'x'], [], 0x20000000, ('127.0.0.1', PORT))",
                                 {"EPERM", "ENETUNREACH", "EOPNOTSUPP"}),
    "broadcast": ("broadcast()", {"EPERM", "ENETUNREACH"}),
    "multicast on the loopback interface": ("multicast()", {"EPERM", "ENETUNREACH", "ENODEV", "EADDRNOTAVAIL"}),
    "DNS": ("socket.getaddrinfo('example.com', 80)", {"-2", "-3"}),
    "an ioctl on an interface": ("__import__('fcntl').ioctl(socket.socket(), 0x8914, b'lo'.ljust(40, b'\\0'))", {"EPERM"}),
}
HELP = """
import socket
def broadcast():
    s = socket.socket(2, 2); s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    return s.sendmsg([b'x'], [], 0, ('255.255.255.255', 9))
def multicast():
    s = socket.socket(2, 2); s.setsockopt(0, socket.IP_MULTICAST_IF, bytes(8) + b'\\1\\0\\0\\0')
    return s.sendmsg([b'x'], [], 0, ('224.0.0.251', 5353))
"""


@pytest.fixture(scope="module")
def server():
    """Something on the host's loopback that would answer, and notes whether it was asked."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    httpd.asked = asked
    yield httpd
    httpd.shutdown()


def script(table, port):
    return HELP + f"PORT = {port}\n" + "\n".join(f"attempt({name!r}, lambda: {row[0]})" for name, row in table.items())


@pytest.fixture(scope="module")
def told(attack, server):
    return attack(script(CONNECTS, server.server_port))


@pytest.fixture(scope="module")
def quiet(attack, server):
    return attack(script(QUIET, server.server_port))[0]


@pytest.mark.parametrize("name", CONNECTS)
def test_is_refused_and_explained(told, name):
    outcomes, denials = told
    assert outcomes[name] == "EPERM"
    denial = [d for d in denials if d["call"].startswith(CONNECTS[name][1])]
    assert denial, [d["call"] for d in denials]
    assert denial[0]["rule"] == "network: none" or denial[0]["call"].startswith("socketpair")
    assert len(denial[0]["allow"]) > 10


@pytest.mark.parametrize("name", QUIET)
def test_is_refused_or_leads_nowhere(quiet, name):
    assert quiet[name] in QUIET[name][1]


def test_the_host_was_never_reached(told, quiet, server, run):
    for language, code in (
            ("python", "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:%d/py', timeout=2)"),
            ("javascript", "await fetch('http://127.0.0.1:%d/js')"),
            ("bash", "exec 5<>/dev/tcp/127.0.0.1/%d && echo GET /sh >&5")):
        answer = run(language, code % server.server_port)
        assert not answer["success"]
    assert server.asked == []


@pytest.mark.parametrize("language, code", [
    ("python", "import urllib.request\nurllib.request.urlopen('http://192.0.2.7:81/', timeout=2)"),
    ("javascript", "await fetch('http://192.0.2.7:81/')"),
    ("typescript", "const r: Response = await fetch('http://192.0.2.7:81/'); return r.status"),
    ("bash", "exec 5<>/dev/tcp/192.0.2.7/81"),
])
def test_a_refused_host_is_named_with_its_rule_and_the_way_out(run, language, code):
    answer = run(language, code)
    assert answer["status"] == "FAILED" and answer["exit_status"] != 0
    assert answer["denials"][0]["call"] == "connect(192.0.2.7:81)"
    assert answer["error"]["type"] == "PermissionError"
    assert "192.0.2.7:81" in answer["error"]["hint"] and "network" in answer["error"]["hint"]


def test_a_cell_has_no_interface_that_is_up(run):
    answer = run("python", "import socket\nreturn socket.if_nameindex() if hasattr(socket, 'if_nameindex') else []")
    assert not answer["success"] or {name for _, name in answer["result"]} <= {"lo"}


def test_two_cells_at_once_cannot_reach_each_other(program):
    """Cells may share an empty network. Two at once: each sends to every port the other could have been given."""
    code = """
import socket, time
s = socket.socket(2, 2); s.setblocking(False)
def send(port):
    try:
        s.sendmsg([b'hello'], [], 0, ('127.0.0.1', port)); return True
    except OSError:
        return False
assert not any([send(port) for port in range(32768, 61000)])
time.sleep(0.3)
try:
    s.recv(9)
except BlockingIOError:
    pass
else:
    raise AssertionError('heard another cell')"""
    loads = [subprocess.Popen([program, "run", "-l", "python", "-c", code, "--repeat", "2", "--json"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert all('"failed":0' in load.communicate(timeout=30)[0] for load in loads)


def test_connected_pairs_work_inside_the_cell(run):
    answer = run("python", "import socket\na, b = socket.socketpair()\na.send(b'hi')\nreturn b.recv(9).decode()")
    assert answer["result"] == "hi"
