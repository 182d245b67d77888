# SPDX-License-Identifier: Apache-2.0
"""Turns a user's script into something that runs and has an answer.

A script answers with `return x` at top level, or by assigning `result`, or with its last
expression. It may `await` at top level. All of that is done on the syntax tree, never on the text,
so lines and columns stay the user's.

A script without a top-level return is compiled as a module. One with a return becomes the body of a
function, which is the only place where Python takes a return; every name it binds is declared
global, and the function's code then loses the flags that give it local variables. What is left runs
like a module (`locals() is globals()`, `exec("x = 1")` binds `x`), and can return.

A top-level `return x` becomes `return (x,)`: so `return None` is an answer and falling off the end
is none.
"""

import ast
import collections
import dis
import inspect
import types

ANSWER = "__retort_answer__"  # where the last expression leaves its value
STAR = "__retort_star__"  # runs `from m import *`, which a function may not contain

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_NO_LOCALS = ~(inspect.CO_OPTIMIZED | inspect.CO_NEWLOCALS)


_POP = dis.opmap["POP_TOP"]
_RETURN = dis.opmap["RETURN_VALUE"]
_TAIL = bytes([dis.opmap["LOAD_CONST"], _RETURN])


class Script:
    """One compiled script: `code` for eval(), `stars` for STAR, and what its tree tells."""

    def __init__(self, code, stars, assigns_result, is_plain=False):
        self.code = code
        self.stars = stars
        self.assigns_result = assigns_result
        self.is_plain = is_plain  # eval() gives the last expression's value
        self.is_async = bool(code.co_flags & inspect.CO_COROUTINE)


def compile_script(source, filename, check=None):
    """Raises what compile() raises. `check` sees the tree before anything is changed in it."""
    if check is None and "result" not in source:
        script = _compile_plain(source, filename)
        if script:
            return script
    tree = ast.parse(source, filename)
    if check:
        check(tree)
    top = _TopLevel()
    top.visit_all(tree.body)
    _keep_last_expression(tree.body)
    if top.has_return:
        code, stars = _compile_as_function(tree, top, filename)
    else:
        code, stars = _compile(tree, filename, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), []
    return Script(code, stars, "result" in top.names or _declares_global(tree, "result"))


def _compile_plain(source, filename):
    """The short way for the usual script, whose last statement is an expression at the margin. A
    tree of Python objects costs more than the rest of a small run; here only the compiler sees one.
    The instruction that drops the expression's value becomes the one that returns it. Whatever is
    not plainly so (jumps to the end, a folded constant, a coroutine) goes the long way: None."""
    try:
        code = _compile(source, filename)
    except SyntaxError:
        return None  # a top-level return or await, or an error the long way reports
    raw = code.co_code
    if (raw[-6:-5] != bytes([_POP]) or raw[-4::2] != _TAIL or raw[::2].count(_RETURN) != 1
            or not hasattr(code, "co_positions")):
        return None
    _, end_line, column, end_column = collections.deque(code.co_positions(), 3)[0]
    if column != 0 or not _is_last(source, end_line, end_column):
        return None
    patched = raw[:-6] + bytes([_RETURN]) + raw[-5:]
    return Script(code.replace(co_code=patched), [], False, is_plain=True)


def _is_last(source, line, column):
    """A constant alone leaves no instruction: only the text shows that nothing follows."""
    lines = source.encode("utf-8", "surrogatepass").split(b"\n")
    rest = [lines[line - 1][column:], *lines[line:]]
    return all(not text.strip() or text.lstrip().startswith(b"#") for text in rest)


def _compile(tree, filename, flags=0):
    return compile(tree, filename, "exec", flags=flags, dont_inherit=True)


def _keep_last_expression(body):
    if body and isinstance(body[-1], ast.Expr):
        last = body[-1]
        target = ast.copy_location(ast.Name(ANSWER, ast.Store()), last)
        body[-1] = ast.copy_location(ast.Assign([target], last.value), last)


def _declares_global(tree, name):
    return any(isinstance(node, ast.Global) and name in node.names for node in ast.walk(tree))


def _compile_as_function(tree, top, filename):
    if top.stray_yield:
        node = top.stray_yield
        raise SyntaxError("'yield' outside function",
                          (filename, node.lineno, node.col_offset + 1, None))
    futures, body = _split_futures(tree.body)
    rewriter = _Rewriter(filename)
    body = [rewriter.visit(node) for node in body]
    names = sorted(top.names | {ANSWER})
    kind = ast.AsyncFunctionDef if top.has_await else ast.FunctionDef
    function = kind(name="<module>", args=_no_arguments(), body=[ast.Global(names), *body],
                    decorator_list=[], returns=None, type_params=[])
    function.lineno, function.col_offset = 1, 0
    whole = ast.fix_missing_locations(ast.Module([*futures, function], []))
    outer = _compile(whole, filename)
    code = next(c for c in outer.co_consts
                if isinstance(c, types.CodeType) and c.co_name == "<module>")
    return code.replace(co_flags=code.co_flags & _NO_LOCALS), rewriter.stars


def _no_arguments():
    return ast.arguments(posonlyargs=[], args=[], vararg=None, kwonlyargs=[], kw_defaults=[],
                         kwarg=None, defaults=[])


def _split_futures(body):
    def is_future(node):
        return isinstance(node, ast.ImportFrom) and node.module == "__future__"

    return [n for n in body if is_future(n)], [n for n in body if not is_future(n)]


class _TopLevel(ast.NodeVisitor):
    """Collects what happens in the script's own scope, not in the functions inside it."""

    def __init__(self):
        self.names = set()
        self.has_return = False
        self.has_await = False
        self.stray_yield = None

    def visit_all(self, nodes):
        for node in nodes:
            if node is not None:
                self.visit(node)

    def visit_Return(self, node):
        self.has_return = True
        self.generic_visit(node)

    def visit_Await(self, node):
        self.has_await = True
        self.generic_visit(node)

    def visit_AsyncFor(self, node):
        self.visit_Await(node)

    def visit_AsyncWith(self, node):
        self.visit_Await(node)

    def visit_Yield(self, node):
        self.stray_yield = self.stray_yield or node
        self.generic_visit(node)

    def visit_YieldFrom(self, node):
        self.visit_Yield(node)

    def visit_Name(self, node):
        if not isinstance(node.ctx, ast.Load):
            self.names.add(node.id)

    def visit_Import(self, node):
        self.names.update((a.asname or a.name.partition(".")[0]) for a in node.names)

    def visit_ImportFrom(self, node):
        if node.module != "__future__":
            self.names.update((a.asname or a.name) for a in node.names if a.name != "*")

    def visit_ExceptHandler(self, node):
        self._add(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node):
        self._add(node.name)
        self.generic_visit(node)

    def visit_MatchStar(self, node):
        self._add(node.name)

    def visit_MatchMapping(self, node):
        self._add(node.rest)
        self.generic_visit(node)

    def _add(self, name):
        if name:
            self.names.add(name)

    # A function's decorators, defaults and annotations, and a class's bases, run out here.

    def visit_FunctionDef(self, node):
        self.names.add(node.name)
        self.visit_all(node.decorator_list)
        self._visit_arguments(node.args)
        self.visit_all([node.returns])

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        self.names.add(node.name)
        self.visit_all([*node.decorator_list, *node.bases, *node.keywords])

    def visit_Lambda(self, node):
        self._visit_arguments(node.args)

    def _visit_arguments(self, args):
        self.visit_all([*args.defaults, *args.kw_defaults])

    def _visit_comprehension(self, node):
        """Its variables are its own; a walrus in it binds out here, and an await counts."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.NamedExpr):
                self.names.add(inner.target.id)
            elif isinstance(inner, ast.Await) or getattr(inner, "is_async", 0):
                self.has_await = True


for _kind in _COMPREHENSIONS:
    setattr(_TopLevel, "visit_" + _kind.__name__, _TopLevel._visit_comprehension)


class _Rewriter(ast.NodeTransformer):
    """What a module may contain and a function with global names may not."""

    def __init__(self, filename):
        self.filename = filename
        self.stars = []

    def visit(self, node):
        return node if isinstance(node, _SCOPES) else super().visit(node)

    def visit_Return(self, node):
        if node.value is not None:
            node.value = ast.copy_location(ast.Tuple([node.value], ast.Load()), node.value)
        return node

    def visit_AnnAssign(self, node):
        if not isinstance(node.target, ast.Name):
            return node
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_ImportFrom(self, node):
        if node.names[0].name != "*":
            return node
        self.stars.append(_compile(ast.Module([node], []), self.filename))
        index = ast.Constant(len(self.stars) - 1)
        call = ast.Expr(ast.Call(ast.Name(STAR, ast.Load()), [index], []))
        return ast.fix_missing_locations(ast.copy_location(call, node))
