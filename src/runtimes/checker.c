/*
 * checker.c - the programs that look for risks in code, by a real parse and not by searching text.
 *
 * They run in cells of their own language's guest. A risk is not a refusal: the cell is the wall,
 * and this is advice for whoever decides whether to run the code at all.
 */
#include "runtimes/runtimes_internal.h"

static const char python_checker[] =
    "import ast\n"
    "RISKY = {'os', 'sys', 'subprocess', 'shutil', 'socket', 'urllib', 'requests', 'http', 'ftplib',\n"
    "         'smtplib', 'telnetlib', 'pickle', 'marshal', 'importlib', 'ctypes', 'multiprocessing'}\n"
    "CALLS = {'eval', 'exec', 'compile', '__import__', 'open', 'input'}\n"
    "risks = []\n"
    "def add(node, kind, message):\n"
    "    risks.append({'line': getattr(node, 'lineno', 0), 'kind': kind, 'message': message})\n"
    "def look(node):\n"
    "    if isinstance(node, ast.Import):\n"
    "        for a in node.names:\n"
    "            if a.name.split('.')[0] in RISKY:\n"
    "                add(node, 'import', f\"imports '{a.name}'\")\n"
    "    elif isinstance(node, ast.ImportFrom) and (node.module or '').split('.')[0] in RISKY:\n"
    "        add(node, 'import', f\"imports from '{node.module}'\")\n"
    "    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:\n"
    "        add(node, 'call', f\"calls {node.func.id}()\")\n"
    "    elif isinstance(node, ast.Attribute) and node.attr in ('__subclasses__', '__globals__',\n"
    "            '__builtins__', '__code__', '__bases__', '__mro__'):\n"
    "        add(node, 'introspection', f\"reaches for {node.attr}\")\n"
    "try:\n"
    "    tree = ast.parse(inputs['source'])\n"
    "    for node in ast.walk(tree):\n"
    "        look(node)\n"
    "    risks.sort(key=lambda r: r['line'])\n"
    "except SyntaxError as e:\n"
    "    risks = [{'line': e.lineno or 0, 'kind': 'syntax', 'message': e.msg}]\n"
    "return risks\n";

static const char node_checker[] =
    "const acorn = require('internal/deps/acorn/acorn/dist/acorn');\n"
    "const walk = require('internal/deps/acorn/acorn-walk/dist/walk');\n"
    "const { stripTypeScriptTypes } = require('module');\n"
    "const RISKY = new Set(['child_process', 'fs', 'net', 'http', 'https', 'dgram', 'vm', 'worker_threads',\n"
    "  'cluster', 'os', 'process', 'fs/promises', 'dns', 'tls', 'inspector', 'module']);\n"
    "const risks = [];\n"
    "const bare = (s) => String(s).replace(/^node:/, '');\n"
    "const add = (n, kind, message) => risks.push({ line: n.loc ? n.loc.start.line : 0, kind, message });\n"
    "const lib = (n, name) => RISKY.has(bare(name)) && add(n, 'import', `imports '${name}'`);\n"
    "const PROTO = new Set(['__proto__', '__defineGetter__', '__defineSetter__', '__lookupGetter__',\n"
    "  '__lookupSetter__']);\n"
    "let text = inputs.source;\n"
    "try {\n"
    "  if (inputs.language === 'typescript') {\n"
    "    const head = 'async function f(){';\n"
    "    try { text = stripTypeScriptTypes(head + text + '\\n}', { mode: 'transform' }).slice(head.length); text = text.slice(0, text.lastIndexOf('}')); }\n"
    "    catch { text = stripTypeScriptTypes(text, { mode: 'transform' }); }\n"
    "  }\n"
    "  const tree = acorn.parse(text, { ecmaVersion: 'latest', locations: true, sourceType: 'module',\n"
    "    allowReturnOutsideFunction: true, allowAwaitOutsideFunction: true });\n"
    "  walk.full(tree, (n) => {\n"
    "    if (n.type === 'CallExpression' && n.callee.type === 'Identifier') {\n"
    "      if (n.callee.name === 'eval') add(n, 'eval', 'calls eval()');\n"
    "      if (n.callee.name === 'Function') add(n, 'eval', 'makes a function from text');\n"
    "      if (n.callee.name === 'require' && n.arguments[0]) lib(n, n.arguments[0].value);\n"
    "      if (n.callee.name === 'fetch') add(n, 'network', 'calls fetch()');\n"
    "    }\n"
    "    if (n.type === 'NewExpression' && n.callee.name === 'Function') add(n, 'eval', 'makes a function from text');\n"
    "    if (n.type === 'ImportDeclaration') lib(n, n.source.value);\n"
    "    if (n.type === 'ImportExpression') add(n, 'import', 'imports dynamically');\n"
    "    if (n.type === 'MemberExpression') {\n"
    "      const name = n.computed ? n.property.value : n.property.name;\n"
    "      if (PROTO.has(name)) add(n, 'prototype', `reaches for ${name}`);\n"
    "      if (n.object.name === 'process' && ['binding', 'dlopen', 'kill', 'exit'].includes(name))\n"
    "        add(n, 'process', `uses process.${name}`);\n"
    "    }\n"
    "  });\n"
    "  risks.sort((a, b) => a.line - b.line);\n"
    "  return risks;\n"
    "} catch (e) {\n"
    "  return [{ line: e.loc ? e.loc.line : 0, kind: 'syntax', message: String(e.message) }];\n"
    "}\n";

static const char bash_checker[] =
    "import subprocess, re\n"
    "p = subprocess.run(['bash', '-n'], input=inputs['source'], text=True, capture_output=True)\n"
    "if p.returncode == 0:\n"
    "    return []\n"
    "m = re.search(r'line (\\d+): (.*)', p.stderr)\n"
    "return [{'line': int(m.group(1)) if m else 0, 'kind': 'syntax', 'message': m.group(2) if m else p.stderr}]\n";

void runtimes_checker(rt_str language, rt_str *runs_in, rt_str *code)
{
    if (rt_str_eq_c(language, "bash")) {
        *runs_in = RT_STR("python");
        *code = rt_str_of(bash_checker);
    } else if (rt_str_eq_c(language, "python")) {
        *runs_in = RT_STR("python");
        *code = rt_str_of(python_checker);
    } else {
        *runs_in = RT_STR("javascript");
        *code = rt_str_of(node_checker);
    }
}
