// SPDX-License-Identifier: Apache-2.0
/*
 * faults.js - turns whatever was thrown into the error that PROTOCOL.md describes.
 *
 * The stack keeps the user's frames and those of packages; the guest's and Node's internals go. The
 * line is that of the first frame in the user's own code. User code owns the thrown value (it may
 * be null, a Proxy, an error with throwing getters): nothing here trusts it, and nothing throws.
 */
'use strict';

const util = require('node:util');
const { CompileError } = require('./compiling.js');

const TEXT_MAX = 16 * 1024;
const REFUSALS = new Set(['EPERM', 'EACCES', 'EROFS']);
const FRAME = /^(\s+at (?:.+? \()?(?:async )?)([^()]*?):(\d+):(-?\d+)(\)?)$/;

function attempt(get, otherwise) {
  try {
    return get();
  } catch {
    return otherwise;
  }
}

function cut(text) {
  if (text.length <= TEXT_MAX) return text;
  const half = TEXT_MAX / 2;
  const gap = `\n... ${text.length - 2 * half} characters left out ...\n`;
  return text.slice(0, half) + gap + text.slice(-half);
}

function hideHome(text) {
  return text.replace(/(?:\/home\/[^/\s:)'"]+|\/root)(?=[/\s:)'"]|$)/g, '<home>');
}

/** What the user would call the file. */
function shorten(file) {
  const path = file.replace(/^file:\/\//, '');
  const folder = `${attempt(() => process.cwd(), '')}/`;
  return path.startsWith(folder) ? path.slice(folder.length) : hideHome(path);
}

/** `scripts` maps the user's file names to a function that finds the user's position, or null. */
function cleanStack(stack, scripts) {
  const lines = [];
  let place = null;
  for (const text of stack.split('\n')) {
    const frame = FRAME.exec(text);
    if (!frame) {
      if (!text.includes(__dirname) && !/^\s+at .*node:internal/.test(text)) lines.push(text);
      continue;
    }
    const [, head, file, line, column, tail] = frame; // at the wrapper a column is below 1
    if (file.startsWith('node:internal') || file.startsWith('node:vm') || file.includes(__dirname))
      continue;
    let at = { line: Number(line), column: Math.max(1, Number(column)) };
    if (scripts.has(file)) {
      at = scripts.get(file)?.(at.line, at.column) ?? at;
      place ??= at;
    }
    lines.push(`${head}${shorten(file)}:${at.line}:${at.column}${tail}`);
  }
  return { stack: lines.join('\n'), place };
}

function isError(thrown) {
  return attempt(() => util.types.isNativeError(thrown) || thrown instanceof Error, false);
}

function typeOf(thrown, message) {
  if (REFUSALS.has(attempt(() => thrown.code))) return 'PermissionError';
  return /^Array buffer allocation failed$/.test(message) ? 'MemoryError' : 'RuntimeError';
}

function causesOf(thrown, scripts, depth) {
  const inner = [];
  if (attempt(() => 'cause' in thrown, false)) inner.push(['cause', attempt(() => thrown.cause)]);
  for (const one of attempt(() => Array.from(thrown.errors ?? []).slice(0, 10), []))
    inner.push(['errors', one]);
  return depth > 4
    ? ''
    : inner
        .map(([label, one]) => {
          const text = isError(one)
            ? cleanStack(String(attempt(() => one.stack, one)), scripts).stack +
              causesOf(one, scripts, depth + 1)
            : attempt(() => util.inspect(one), '');
          return `\n[${label}]: ${text}`;
        })
        .join('');
}

function describeThrown(thrown) {
  const message =
    typeof thrown === 'string' ? thrown : attempt(() => util.inspect(thrown), 'a thrown value');
  const kind = thrown === null ? 'null' : typeof thrown;
  return {
    type: 'RuntimeError',
    name: attempt(() => thrown.constructor.name, kind) || kind,
    message: cut(message),
  };
}

function describeSyntax(error) {
  return {
    type: 'SyntaxError',
    name: 'SyntaxError',
    message: cut(error.message),
    line: error.line,
    column: error.column,
  };
}

function describe(thrown, scripts) {
  if (thrown instanceof CompileError) return describeSyntax(thrown);
  if (!isError(thrown)) return describeThrown(thrown);
  const message = String(attempt(() => `${thrown.message}`, ''));
  const error = {
    type: typeOf(thrown, message),
    name: attempt(() => `${thrown.name}`, 'Error'),
    message: cut(message),
  };
  const { stack, place } = cleanStack(String(attempt(() => `${thrown.stack}`, '')), scripts);
  Object.assign(error, place, { stack: cut(stack + causesOf(thrown, scripts, 0)) });
  const errno = attempt(() => thrown.errno);
  if (typeof errno === 'number') error.errno = Math.abs(errno);
  const path = attempt(() => thrown.path);
  if (typeof path === 'string') error.path = cut(path);
  const status = attempt(() => thrown.retortStatus);
  if (typeof status === 'number') error.status = status;
  const refused = attempt(() => thrown.retortModule);
  if (typeof refused === 'string')
    Object.assign(error, { type: 'PermissionError', module: refused }, thrown.retortPlace);
  return error;
}

module.exports = { describe };
