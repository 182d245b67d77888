# SPDX-License-Identifier: Apache-2.0
"""The Python zygote: warms an interpreter once, then forks it into cells.

    python3 -I -B zygote.py [module,module...]

Started by the warden with its orders on descriptor 3, in the prepared root and without network.
It imports what user code is likely to want, so that a cell finds it loaded, and whatever of the
modules on the command line is installed. It runs no user code and opens nothing that a cell should
not have.
"""

import gc
import importlib
import json
import os
import sys
import warnings

FOLDER = os.path.dirname(os.path.abspath(__file__))
ORDERS = 3  # in the zygote; in a cell the same number is
CONTROL = 3
WORKDIR = "/work"

COMMON = """
    ast asyncio base64 bisect calendar collections concurrent.futures concurrent.futures.thread
    contextlib copy csv dataclasses datetime decimal enum fractions functools glob gzip hashlib
    heapq html inspect io itertools json linecache logging math mmap operator os pathlib pickle pprint
    random re secrets shutil statistics string struct subprocess sys tempfile textwrap threading
    time traceback types typing unicodedata urllib.parse uuid zlib zoneinfo _strptime
""".split()

# Goes through parsing, the tree, a top-level return, await, a result and an error once, so that the
# code that handles them is in memory before the first fork.
REHEARSAL = [
    "import math\nx: int = 1\nfor i in range(3):\n    x += i\nprint\n[i for i in range(3)]",
    "async def f():\n    return 1\nreturn await f()",
    "def g(:",
    "1 / 0",
]


def load_guest():
    """Our modules leave sys.modules again: a user may have an `imports.py` of his own."""
    sys.path.insert(0, FOLDER)
    importlib.import_module("retort_guest").nestle()  # first: the rest is to lie close together
    names = ["retort_guest", "faults", "imports", "answers", "compiling", "branching", "dates",
             "desk", "guest"]
    modules = {name: importlib.import_module(name) for name in names}
    sys.path.remove(FOLDER)
    for name in names:
        del sys.modules[name]
    return modules


def preload(names):
    loaded = []
    for name in names:
        try:
            importlib.import_module(name)
            if name == "matplotlib":
                sys.modules[name].use("Agg")
                importlib.import_module("matplotlib.pyplot")
            loaded.append(name)
        except Exception:
            pass  # not installed, or broken: user code will get the same error with its own line
    return loaded


def rehearse(modules):
    for source in REHEARSAL:
        try:
            script = modules["compiling"].compile_script(source, "main.py")
            value = eval(script.code, {"__name__": "__main__"})
            if script.is_async:
                value.close()
        except SyntaxError as exc:
            modules["faults"].describe_syntax(exc)
        except ArithmeticError as exc:
            modules["faults"].describe(exc, ["main.py"])
    modules["answers"].to_json({"a": [1, 2.5, "x", {1, 2}]})


def require_one_thread():
    """A lock that another thread holds at the fork stays held in the child for ever."""
    count = len(os.listdir("/proc/self/task"))
    if count > 1:
        sys.exit("a zygote must have one thread and this one has %d: a preloaded module starts threads"
                 % count)


def reseed():
    """A forked generator would give every cell the same numbers."""
    sys.modules["threading"].main_thread()._set_native_id()  # it has a new one, too
    sys.modules["random"].seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()


def main():
    modules = load_guest()
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)  # guards servers; a cell has its own limit on time
    warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")
    preload(COMMON)
    wanted = sys.argv[1].split(",") if len(sys.argv) > 1 else []
    loaded = preload(name for name in wanted if name)
    rehearse(modules)
    sys.modules["linecache"].clearcache()
    require_one_thread()
    native = modules["retort_guest"]
    guest = modules["guest"].Guest(CONTROL, native, WORKDIR)
    guest.rehearse()
    native.announce(ORDERS, json.dumps({"language": "python", "preloaded": loaded,
                                        "version": sys.version.partition(" ")[0]}))
    gc.collect()
    gc.freeze()
    native.serve(ORDERS)
    reseed()
    if native.is_ahead():
        guest.rehearse()
    guest.serve()


main()
