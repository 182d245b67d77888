// SPDX-License-Identifier: Apache-2.0
/*
 * compiling.js - turns a user's script into a function that answers.
 *
 * An expression by itself is its own answer; statements answer with `return`; a module answers with
 * `export default`. All become the body of one async function, so `await` works everywhere. The
 * wrapper stands on the user's first line and a negative column offset takes it out of every
 * position V8 reports, so lines and columns stay the user's.
 *
 *     static imports   const { default: fs } = await import('fs'), in place
 *     TypeScript       types become spaces (same positions); where that is not enough (enum,
 *                      namespace, parameter properties) the code is transformed, with a source map
 *     a session        declarations at top level become properties of globalThis, so that the
 *                      next run sees them; nothing is constant there, as in a notebook
 *
 * Node carries a parser, acorn, for its own REPL; we use that one. What acorn does not know yet
 * goes to V8 as it is.
 */
'use strict';

const vm = require('node:vm');
const { stripTypeScriptTypes, SourceMap } = require('node:module');
const acorn = require('internal/deps/acorn/acorn/dist/acorn');
const walk = require('internal/deps/acorn/acorn-walk/dist/walk');

const ANSWER = '__retort_answer';
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;
const TYPED_OPEN = 'async function retort() {';
const STATIC_MODULE = /^[ \t]*(?:import\b(?!\s*[(.])|export\b)/m;
const STATIC_IMPORT =
  /^[ \t]*import\s(?:[\w$*{}\s,]+?\sfrom\s*)?["'][^"'\n]+["'](?:\s*with\s*\{[^}]*\})?[ \t]*;?/gm;

/** The code cannot be compiled; `line` and `column` are the user's, when known. */
class CompileError extends Error {
  constructor(message, line, column) {
    super(message);
    this.name = 'SyntaxError';
    this.line = line;
    this.column = column;
  }
}

/* -- parsing ------------------------------------------------------------------------------- */

const OPTIONS = {
  ecmaVersion: 'latest',
  allowReturnOutsideFunction: true,
  allowAwaitOutsideFunction: true,
  allowHashBang: true,
  locations: true,
};

function parseAs(sourceType, code) {
  return acorn.parse(code, { ...OPTIONS, sourceType });
}

/** { tree }, or { error } when V8 should say what is wrong, or that nothing is. */
function parse(code) {
  try {
    return { tree: parseAs('script', code) };
  } catch (error) {
    if (!/sourceType: module|import\.meta/.test(error.message)) return { error };
  }
  try {
    return { tree: parseAs('module', code) };
  } catch (error) {
    const message = error.message.replace(/ \(\d+:\d+\)$/, '');
    throw new CompileError(message, error.loc?.line, error.loc && error.loc.column + 1);
  }
}

/** `{a: 1}` alone is a block to the parser and an object to its author. */
function isObjectLiteral(code) {
  if (!/^\s*\{/.test(code)) return false;
  try {
    const { body } = parseAs('script', `(${code.replace(/;\s*$/, '')}\n)`);
    return body.length === 1 && body[0].expression.type === 'ObjectExpression';
  } catch {
    return false;
  }
}

function namesIn(pattern, names = []) {
  switch (pattern?.type) {
    case 'Identifier':
      names.push(pattern.name);
      break;
    case 'ObjectPattern':
      pattern.properties.forEach((p) => namesIn(p.value ?? p.argument, names));
      break;
    case 'ArrayPattern':
      pattern.elements.forEach((p) => namesIn(p, names));
      break;
    case 'AssignmentPattern':
      namesIn(pattern.left, names);
      break;
    case 'RestElement':
      namesIn(pattern.argument, names);
      break;
  }
  return names;
}

/** Names that would clash with a parameter of the same name. */
function declaredNames(tree) {
  const names = new Set();
  for (const node of tree?.body ?? []) {
    const declaration = node.declaration ?? node;
    if (declaration.type === 'VariableDeclaration')
      declaration.declarations.forEach((d) => namesIn(d.id).forEach((name) => names.add(name)));
    else if (/^(Class|Function)Declaration$/.test(declaration.type) && declaration.id)
      names.add(declaration.id.name);
    else if (node.type === 'ImportDeclaration')
      node.specifiers.forEach((s) => names.add(s.local.name));
  }
  return names;
}

/* -- rewriting ----------------------------------------------------------------------------- */

/** Replacements in a text; each keeps the number of lines. */
class Edits {
  constructor(code) {
    this.code = code;
    this.list = [];
  }

  replace(start, end, text) {
    const lines = this.code.slice(start, end).split('\n').length - text.split('\n').length;
    this.list.push({ start, end, text: text + '\n'.repeat(Math.max(0, lines)) });
  }

  insert(at, text) {
    this.list.push({ start: at, end: at, text });
  }

  apply() {
    let code = this.code;
    for (const { start, end, text } of this.list.sort((a, b) => b.start - a.start || b.end - a.end))
      code = code.slice(0, start) + text + code.slice(end);
    return code;
  }
}

function importCall(node) {
  const attributes = (node.attributes ?? []).map(
    (a) => `${a.key.raw ?? a.key.name}: ${a.value.raw}`,
  );
  const options = attributes.length ? `, { with: { ${attributes.join(', ')} } }` : '';
  return `await import(${node.source.raw}${options})`;
}

function rewriteImport(edits, node, keep) {
  const names = [];
  let whole = null;
  for (const s of node.specifiers) {
    if (s.type === 'ImportNamespaceSpecifier') whole = s.local.name;
    else if (s.type === 'ImportDefaultSpecifier') names.push(`default: ${s.local.name}`);
    else names.push(`${s.imported.raw ?? s.imported.name}: ${s.local.name}`);
  }
  const parts = [];
  if (whole) parts.push(`${whole} = ${importCall(node)}`);
  if (names.length) parts.push(`{ ${names.join(', ')} } = ${whole ?? importCall(node)}`);
  const text =
    parts.length === 0
      ? importCall(node)
      : keep
        ? `(${parts.join(', ')})`
        : `const ${parts.join(', ')}`;
  edits.replace(node.start, node.end, `;${text};`);
}

function rewriteDefault(edits, node) {
  const declaration = node.declaration;
  if (/^(Class|Function)Declaration$/.test(declaration.type) && declaration.id) {
    edits.replace(node.start, declaration.start, '');
    edits.insert(node.end, `;${ANSWER} = ${declaration.id.name};`);
  } else {
    edits.replace(node.start, declaration.start, `;${ANSWER} = `);
    edits.insert(node.end, ';');
  }
}

function rewriteExport(edits, node) {
  if (node.declaration) {
    edits.replace(node.start, node.declaration.start, ' '.repeat('export '.length));
    return;
  }
  const chosen = (node.specifiers ?? []).find(
    (s) => (s.exported.name ?? s.exported.value) === 'default',
  );
  const text = node.source ? importCall(node) : chosen ? `${ANSWER} = ${chosen.local.name}` : '';
  edits.replace(node.start, node.end, `;${text};`);
}

/** `const a = 1, { b } = c` becomes `(a = 1, { b } = c)`: in sloppy code that makes globals. */
function globalise(edits, node, hoisted) {
  if (node.type === 'VariableDeclaration' && /^(var|let|const)$/.test(node.kind)) {
    const { kind, declarations } = node;
    edits.replace(node.start, node.start + kind.length, `;${' '.repeat(kind.length - 2)}(`);
    for (const { id, init, end } of declarations)
      if (!init) edits.insert(end, kind === 'var' ? ` = globalThis.${id.name}` : ' = void 0');
    edits.insert(declarations.at(-1).end, ')');
  } else if (node.type === 'ClassDeclaration' && node.id) {
    edits.insert(node.start, `;${node.id.name} = `);
    edits.insert(node.end, ';');
  } else if (node.type === 'FunctionDeclaration' && node.id) {
    hoisted.push(`globalThis.${node.id.name} = ${node.id.name};`);
  }
}

function rewriteMeta(edits, tree, folder, filename) {
  const meta = JSON.stringify({
    dirname: folder,
    filename: `${folder}/${filename}`,
    url: `file://${folder}/${filename}`,
  });
  walk.simple(tree, {
    MetaProperty(node) {
      if (node.meta.name === 'import') edits.replace(node.start, node.end, `(${meta})`);
    },
  });
}

/*
 * V8 places some errors of `return (x)` at the return; an arrow's body is a place of its own.
 */
const asExpression = (code) => ({ code, open: (names) => `(async (${names}) => (`, close: '\n))' });

/** What the function is made of: { code, open(parameters), close }; open is one line. */
function bodyOf(code, tree, { keep, folder, filename }) {
  if (code.startsWith('#!')) code = `//${code.slice(2)}`;
  const statements = (tree?.body ?? []).filter((node) => node.type !== 'EmptyStatement');
  if (isObjectLiteral(code)) return asExpression(code.replace(/;\s*$/, ''));
  if (statements.length === 1 && statements[0].type === 'ExpressionStatement') {
    const [{ start, end }] = statements;
    const semicolon = code[end - 1] === ';' ? 1 : 0;
    const rest = code.slice(end).replace(/;/g, (s, at) => (isEmpty(tree, end + at) ? ' ' : s));
    const before = code.slice(0, start).replace(/;/g, (s, at) => (isEmpty(tree, at) ? ' ' : s));
    return asExpression(before + code.slice(start, end - semicolon) + ' '.repeat(semicolon) + rest);
  }
  const edits = new Edits(code);
  const hoisted = [];
  for (const node of statements) {
    if (node.type === 'ImportDeclaration') rewriteImport(edits, node, keep);
    else if (node.type === 'ExportDefaultDeclaration') rewriteDefault(edits, node);
    else if (/^Export(Named|All)Declaration$/.test(node.type)) rewriteExport(edits, node);
    if (keep)
      globalise(
        edits,
        node.type === 'ExportNamedDeclaration' ? (node.declaration ?? node) : node,
        hoisted,
      );
  }
  const isModule = tree?.sourceType === 'module';
  if (isModule) rewriteMeta(edits, tree, folder, filename);
  const head =
    (isModule && !keep ? '"use strict"; ' : '') +
    (isModule ? `let ${ANSWER}; ` : '') +
    hoisted.join(' ');
  return {
    code: edits.apply(),
    open: (names) => `(async function (${names}) { ${head}`,
    close: isModule ? `\nreturn ${ANSWER}; })` : '\n})',
  };
}

function isEmpty(tree, at) {
  return tree.body.some((node) => node.type === 'EmptyStatement' && node.start === at);
}

/* -- TypeScript ---------------------------------------------------------------------------- */

function strip(text, mode, prefix) {
  try {
    return stripTypeScriptTypes(text, { mode, sourceMap: mode === 'transform' });
  } catch (error) {
    if (error.code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') return null;
    const { line, column } = placeInStack(error.stack, prefix);
    throw new CompileError(error.message, line, column);
  }
}

/** The text without its source map, and the map as a function from generated to user's position. */
function takeMap(text, prefix) {
  const at = text.lastIndexOf('//# sourceMappingURL=');
  const encoded = text.slice(text.indexOf(',', at) + 1);
  let map = null;
  const locate = (line, column) => {
    map ??= new SourceMap(JSON.parse(Buffer.from(encoded, 'base64').toString()));
    const entry = map.findEntry(line - 1, column - 1);
    if (entry.originalLine === undefined) return { line, column };
    const shift = entry.originalLine === 0 ? prefix : 0;
    return { line: entry.originalLine + 1, column: Math.max(1, entry.originalColumn + 1 - shift) };
  };
  return { text: text.slice(0, at), locate };
}

/** Wrapped, so that a top-level return parses; the wrapper comes off again. */
function stripScript(source) {
  const wrapped = `${TYPED_OPEN}${source}\n}`;
  const stripped = strip(wrapped, 'strip', TYPED_OPEN.length);
  if (stripped !== null)
    return { code: stripped.slice(TYPED_OPEN.length, stripped.lastIndexOf('}')) };
  const { text, locate } = takeMap(
    strip(wrapped, 'transform', TYPED_OPEN.length),
    TYPED_OPEN.length,
  );
  return { code: text.slice(text.indexOf('{') + 1, text.lastIndexOf('}')), locate };
}

function stripModule(source) {
  const stripped = strip(source, 'strip', 0);
  if (stripped !== null) return { code: stripped };
  const { text, locate } = takeMap(strip(source, 'transform', 0), 0);
  return { code: text, locate };
}

/** Imports beside a return: neither a module nor a script to TypeScript. Each half goes alone. */
function stripMixed(source) {
  const blank = (text) => text.replace(/[^\n]/g, ' ');
  const imports = [];
  const body = source.replace(STATIC_IMPORT, (text, at) => {
    imports.push({ at, text });
    return blank(text);
  });
  const { code, locate } = stripScript(body);
  const js = imports.map(({ at, text }) => ({ at, text: stripModule(text).code }));
  if (locate || code.length < source.length)
    return { code: js.map(({ text }) => text.replace(/\n/g, ' ')).join(' ') + code, locate };
  return {
    code: js.reduce(
      (all, { at, text }) => all.slice(0, at) + text + all.slice(at + text.length),
      code,
    ),
  };
}

function stripTypes(source) {
  if (!STATIC_MODULE.test(source)) return stripScript(source);
  try {
    return stripModule(source);
  } catch (error) {
    if (!/return/i.test(error.message)) throw error;
    return stripMixed(source);
  }
}

/* -- compiling ----------------------------------------------------------------------------- */

/** V8 and swc both put "file:line", the line and a caret before the stack. */
function placeInStack(stack, prefix) {
  const lines = String(stack).split('\n');
  const line = Number(/:(\d+)$/.exec(lines[0])?.[1]);
  const caret = lines.slice(1, 6).find((text) => /^\s*\^+\s*$/.test(text));
  if (!line) return {};
  const column =
    caret === undefined ? undefined : caret.indexOf('^') + 1 - (line === 1 ? prefix : 0);
  return { line, column: column > 0 ? column : undefined };
}

/** V8 saw the wrapper's end, which is none of the user's business; acorn saw the code alone. */
function strayEnd(code, seen) {
  const lines = code.split('\n');
  const isEnd = !seen?.loc || seen.pos >= code.trimEnd().length;
  return isEnd
    ? new CompileError('Unexpected end of input', lines.length, lines.at(-1).length + 1)
    : new CompileError(`Unexpected token '${code[seen.pos]}'`, seen.loc.line, seen.loc.column + 1);
}

function syntaxError(error, code, prefix, { seen, locate }) {
  const place = placeInStack(error.stack, prefix);
  if (place.line > code.split('\n').length) return strayEnd(code, seen);
  const { line, column } = locate && place.line ? locate(place.line, place.column ?? 1) : place;
  return new CompileError(error.message, line, column);
}

/*
 * The user's function starts on an empty stack, from code without a file of ours, so that a stack the
 * code looks at shows nothing of the guest.
 */
const start = vm.runInThisContext(
  `(run, args, resolve, reject) => () => {
     try { resolve(run.apply(globalThis, args)); } catch (error) { reject(error); }
   }`,
  { filename: 'node:internal/cell' },
);

/**
 * Compiles `source`; `values` are what it may see as variables. Returns { call, locate }: call()
 * gives the promise of the answer, locate() turns a position V8 reports into the user's.
 */
function compile(source, { language, filename, folder, keep, values, check }) {
  const typed = language === 'typescript' ? stripTypes(source) : { code: source };
  const { tree, error: seen } = parse(typed.code);
  if (check && tree) check(tree, walk, typed.locate);
  const { code, open: opening, close } = bodyOf(typed.code, tree, { keep, folder, filename });
  const taken = declaredNames(tree);
  const names = Object.keys(values).filter((name) => IDENTIFIER.test(name) && !taken.has(name));
  const open = opening(names.join(', '));
  let script;
  try {
    script = new vm.Script(`${open}${code}${close}`, {
      filename,
      columnOffset: -open.length,
      importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    });
  } catch (error) {
    throw syntaxError(error, code, open.length, { seen, locate: typed.locate });
  }
  const run = script.runInThisContext();
  const args = names.map((name) => values[name]);
  return {
    call: () => new Promise((resolve, reject) => queueMicrotask(start(run, args, resolve, reject))),
    locate: typed.locate,
  };
}

/** Whether `name` can be a parameter: an identifier that is not reserved. */
function isVariable(name) {
  if (
    !IDENTIFIER.test(name) ||
    /^(arguments|eval|await|yield|let|static|async|undefined|NaN|Infinity)$/.test(name)
  )
    return false;
  try {
    acorn.parse(`var ${name}`, { ecmaVersion: 'latest' });
    return true;
  } catch {
    return false;
  }
}

module.exports = { compile, CompileError, isVariable };
