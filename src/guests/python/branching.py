# SPDX-License-Identifier: Apache-2.0
"""Before and after a copy of the live interpreter is made.

    if not obstacles(loop):
        place = remember()
        if port.park(control):      # True in the copy
            arrive(place, loop)

A copy has the memory and nothing else: no thread but the one that waits, no open file, no child
process. What would be missing is an obstacle, and named, so that nobody finds it missing later. An
event loop that is idle is none: it gets new descriptors.
"""

import os
import selectors
import signal
import sys
import threading

OWN = 4  # descriptors 0 to 3 are ours, and every copy gets its own
NAMES_MAX = 5


def obstacles(loop):
    """What cannot be copied, as a sentence, or None."""
    found = [*_threads(), *_processes(), *_descriptors(loop)]
    if not found:
        return None
    more = ", and %d more" % (len(found) - NAMES_MAX) if len(found) > NAMES_MAX else ""
    return "a branch cannot have %s%s; end or close it first" % (", ".join(found[:NAMES_MAX]), more)


def _threads():
    known = [t for t in threading.enumerate() if t is not threading.main_thread()]
    yield from ("the thread '%s'" % t.name for t in known)
    others = len(os.listdir("/proc/self/task")) - 1 - len(known)
    if others > 0:
        yield "%d thread(s) of a library" % others


def _processes():
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or int(pid) in (1, os.getpid()):
            continue
        try:
            with open("/proc/%s/stat" % pid) as file:
                name, _, rest = file.read().partition("(")[2].rpartition(")")
        except OSError:
            continue
        if rest.split()[0] != "Z":
            yield "the process '%s'" % name


def _descriptors(loop):
    ours = _loop_descriptors(loop)
    for fd in sorted(int(name) for name in os.listdir("/proc/self/fd")):
        if fd < OWN or fd in ours:
            continue
        try:
            target = os.readlink("/proc/self/fd/%d" % fd)
        except OSError:
            continue  # that of the listing itself
        if target.startswith("socket:"):
            yield "an open socket (descriptor %d)" % fd
        elif target.startswith("pipe:"):
            yield "an open pipe (descriptor %d)" % fd
        elif target.startswith("/"):
            yield "the open file %s" % target
        else:
            yield "descriptor %d (%s)" % (fd, target)


def _loop_descriptors(loop):
    if loop is None or loop.is_closed():
        return set()
    return {loop._selector.fileno(), loop._ssock.fileno(), loop._csock.fileno()}


def remember():
    mask = os.umask(0o022)
    os.umask(mask)
    try:
        return os.getcwd(), mask
    except OSError:
        return None, mask  # the directory was removed


def arrive(place, loop):
    folder, mask = place
    _renew_loop(loop)
    os.umask(mask)
    try:
        os.chdir(folder or ".")
    except OSError:
        pass
    for number in signal.valid_signals():  # they are the kernel's, and did not come along
        handler = signal.getsignal(number)
        if callable(handler) or handler == signal.SIG_IGN:
            try:
                signal.signal(number, handler)
            except (OSError, ValueError):
                pass
    threading.main_thread()._set_native_id()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()


def _renew_loop(loop):
    """Its descriptors do not exist here; closing them now keeps it from closing others' later."""
    if loop is None or loop.is_closed():
        return
    for old in (loop._selector, loop._ssock, loop._csock):
        try:
            old.close()
        except (OSError, KeyError):
            pass
    loop._selector = selectors.DefaultSelector()
    loop._internal_fds = 0
    loop._make_self_pipe()
