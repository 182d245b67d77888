# SPDX-License-Identifier: Apache-2.0
"""allowed_imports: which modules the user's code may import.

This is a guard rail, not a wall. It tells a model early, and with the line, that its plan does not
fit the policy; Python code that wants to get around it can. The wall is the cell.

The tree is checked before anything runs; while it runs, __import__ and importlib.import_module()
are checked when the user's code is what calls them. Modules import what they like.
"""

import ast
import builtins
import importlib
import os
import sys

from faults import ImportRefused


class Guard:
    def __init__(self, allowed):
        self.allowed = [str(name) for name in allowed]

    def allows(self, module):
        return module == "__future__" or any(
            module == name or module.startswith(name + ".") for name in self.allowed)

    def refusal(self, module, node=None):
        exc = ImportRefused("import of '%s' is not allowed by this policy; allowed: %s; "
                            "add it with allowed_imports"
                            % (module, ", ".join(self.allowed) or "none"), name=module)
        exc.lineno = getattr(node, "lineno", None)
        exc.column = getattr(node, "col_offset", 0) + 1
        return exc

    def check_tree(self, tree):
        for node in ast.walk(tree):
            for module in _imported(node):
                if not self.allows(module):
                    raise self.refusal(module, node)

    def __enter__(self):
        self._import, self._import_module = builtins.__import__, importlib.import_module
        builtins.__import__ = self._guarded_import
        importlib.import_module = self._guarded_import_module
        return self

    def __exit__(self, *_):
        builtins.__import__, importlib.import_module = self._import, self._import_module

    def _guarded_import(self, name, globals=None, locals=None, fromlist=(), level=0):
        # C code imports in the name of whoever called it (datetime.strptime imports _strptime) and
        # is known by its empty list; the import statement passes None or a tuple.
        is_from_c = type(fromlist) is list and not fromlist and globals is locals
        if level == 0 and not is_from_c:
            self._check(name, globals if globals is not None else _caller())
        return self._import(name, globals, locals, fromlist, level)

    def _guarded_import_module(self, name, package=None):
        self._check(name, _caller())
        return self._import_module(name, package)

    def _check(self, name, namespace):
        if isinstance(name, str) and _is_users(namespace) and not self.allows(name):
            raise self.refusal(name)


def _caller():
    return sys._getframe(2).f_globals


def _is_users(namespace):
    """The script itself, what it passes to exec(), and modules it wrote beside itself."""
    name = namespace.get("__name__")
    file = namespace.get("__file__")
    return (name in (None, "__main__", "builtins")
            or isinstance(file, str) and file.startswith(os.getcwd() + os.sep))


def _imported(node):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        return [node.module]
    return []
