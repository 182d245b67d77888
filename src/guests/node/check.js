// SPDX-License-Identifier: Apache-2.0
// Looks for risks in JavaScript and TypeScript by a real parse; runs in a cell, as `retort validate`
// asks. Input: { source, language }. Answer: an array of { line, kind, message }.
const acorn = require('internal/deps/acorn/acorn/dist/acorn');
const walk = require('internal/deps/acorn/acorn-walk/dist/walk');
const { stripTypeScriptTypes } = require('module');
const RISKY = new Set(['child_process', 'fs', 'net', 'http', 'https', 'dgram', 'vm', 'worker_threads',
  'cluster', 'os', 'process', 'fs/promises', 'dns', 'tls', 'inspector', 'module']);
const risks = [];
const bare = (s) => String(s).replace(/^node:/, '');
const add = (n, kind, message) => risks.push({ line: n.loc ? n.loc.start.line : 0, kind, message });
const lib = (n, name) => RISKY.has(bare(name)) && add(n, 'import', `imports '${name}'`);
const PROTO = new Set(['__proto__', '__defineGetter__', '__defineSetter__', '__lookupGetter__',
  '__lookupSetter__']);
/* Wrapped, because a top-level return is no TypeScript; unwrapped, because an import needs a module. */
function stripped(source) {
  const forms = [`async function f(){${source}\n}`, source];
  let problem;
  for (const form of forms)
    for (const mode of ['strip', 'transform'])
      try {
        return stripTypeScriptTypes(form, { mode });
      } catch (error) {
        problem ??= error;
      }
  throw problem;
}

try {
  const text = inputs.language === 'typescript' ? stripped(inputs.source) : inputs.source;
  const tree = acorn.parse(text, { ecmaVersion: 'latest', locations: true, sourceType: 'module',
    allowReturnOutsideFunction: true, allowAwaitOutsideFunction: true });
  walk.full(tree, (n) => {
    if (n.type === 'CallExpression' && n.callee.type === 'Identifier') {
      if (n.callee.name === 'eval') add(n, 'eval', 'calls eval()');
      if (n.callee.name === 'Function') add(n, 'eval', 'makes a function from text');
      if (n.callee.name === 'require' && n.arguments[0]) lib(n, n.arguments[0].value);
      if (n.callee.name === 'fetch') add(n, 'network', 'calls fetch()');
    }
    if (n.type === 'NewExpression' && n.callee.name === 'Function') add(n, 'eval', 'makes a function from text');
    if (n.type === 'ImportDeclaration') lib(n, n.source.value);
    if (n.type === 'ImportExpression') add(n, 'import', 'imports dynamically');
    if (n.type === 'MemberExpression') {
      const name = n.computed ? n.property.value : n.property.name;
      if (PROTO.has(name)) add(n, 'prototype', `reaches for ${name}`);
      if (n.object.name === 'process' && ['binding', 'dlopen', 'kill', 'exit'].includes(name))
        add(n, 'process', `uses process.${name}`);
    }
  });
  risks.sort((a, b) => a.line - b.line);
  return risks;
} catch (e) {
  return [{ line: e.loc ? e.loc.line : 0, kind: 'syntax', message: String(e.message) }];
}
