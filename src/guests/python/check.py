# SPDX-License-Identifier: Apache-2.0
"""Looks for risks in Python code by a real parse; runs in a cell, as `retort validate` asks.

Input: {"source": text}. Answer: a list of {line, kind, message}. A risk is advice, not a refusal:
the cell is the wall.
"""
import ast
RISKY = {'os', 'sys', 'subprocess', 'shutil', 'socket', 'urllib', 'requests', 'http', 'ftplib',
         'smtplib', 'telnetlib', 'pickle', 'marshal', 'importlib', 'ctypes', 'multiprocessing'}
CALLS = {'eval', 'exec', 'compile', '__import__', 'open', 'input'}
risks = []
def add(node, kind, message):
    risks.append({'line': getattr(node, 'lineno', 0), 'kind': kind, 'message': message})
def look(node):
    if isinstance(node, ast.Import):
        for a in node.names:
            if a.name.split('.')[0] in RISKY:
                add(node, 'import', f"imports '{a.name}'")
    elif isinstance(node, ast.ImportFrom) and (node.module or '').split('.')[0] in RISKY:
        add(node, 'import', f"imports from '{node.module}'")
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
        add(node, 'call', f"calls {node.func.id}()")
    elif isinstance(node, ast.Attribute) and node.attr in ('__subclasses__', '__globals__',
            '__builtins__', '__code__', '__bases__', '__mro__'):
        add(node, 'introspection', f"reaches for {node.attr}")
try:
    tree = ast.parse(inputs['source'])
    for node in ast.walk(tree):
        look(node)
    risks.sort(key=lambda r: r['line'])
except SyntaxError as e:
    risks = [{'line': e.lineno or 0, 'kind': 'syntax', 'message': e.msg}]
return risks
