# SPDX-License-Identifier: Apache-2.0
"""A prelude: a module of the code's own, loaded before the code runs and imported by its name."""

import base64
import marshal
import sys
import types

import faults


def load(prelude):
    """Leaves the module in sys.modules; raises what its code raises."""
    name = prelude["name"]
    module = types.ModuleType(name.rpartition(".")[0] or name)
    module.__file__ = name
    if "compiled" in prelude:
        code = marshal.loads(base64.b64decode(prelude["compiled"]))
    else:
        faults.remember_source(name, prelude["code"])
        code = compile(prelude["code"], name, "exec", dont_inherit=True)
    sys.modules[module.__name__] = module
    exec(code, module.__dict__)
