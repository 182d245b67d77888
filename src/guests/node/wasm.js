// SPDX-License-Identifier: Apache-2.0
/*
 * wasm.js - runs a WebAssembly module: a WASI command, or one exported function.
 *
 *     load(order, value, folder).call()
 *
 * The code of the order is the module in base64, or the path of a file that ends in .wasm. A command
 * (WASI preview 1) sees what any program sees in a cell: arguments, the input on stdin and in
 * $INPUT, the scratch directory, and nothing else. A module without _start answers with what the
 * function gives that the input names: {"call": "add", "args": [1, 2]}.
 */
'use strict';

const fs = require('node:fs');
const path = require('node:path');

const MAGIC = Buffer.from([0, 0x61, 0x73, 0x6d]);
const ENV_MAX = 100 * 1024;

class WasmError extends Error {
  constructor(name, message, status) {
    super(message);
    this.name = name;
    this.retortStatus = status;
    this.stack = `${name}: ${message}`;
  }
}

function isPath(code) {
  return code.length < 1000 && /^[^\n]+\.wasm$/.test(code);
}

function bytesOf(order, folder) {
  const code = (order.code ?? '').trim();
  const bytes = isPath(code)
    ? fs.readFileSync(path.resolve(folder, code))
    : Buffer.from(code, 'base64');
  if (!bytes.subarray(0, 4).equals(MAGIC))
    throw new WasmError(
      'CompileError',
      'the code is no WebAssembly module: give it in base64, or the path of a .wasm file',
    );
  return bytes;
}

/** The input on stdin, unless nothing can be written: then what the run has there. */
function stdinOf(value) {
  if (value === undefined) return 0;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const name = `/tmp/.stdin-${process.pid}`;
  try {
    const fd = fs.openSync(name, 'w+', 0o600);
    fs.unlinkSync(name);
    fs.writeSync(fd, text, 0);
    return fd;
  } catch {
    return 0;
  }
}

function environment(value) {
  const env = { ...process.env };
  if (env.INPUT !== undefined) env.WASM_INPUT = env.INPUT;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return env;
  for (const [key, member] of Object.entries(value)) {
    const text = typeof member === 'string' ? member : JSON.stringify(member);
    if (/^\w{1,199}$/.test(key) && text.length < ENV_MAX) env[`INPUT_${key}`] = text;
  }
  return env;
}

function runCommand(module, order, value, folder) {
  const { WASI } = require('node:wasi');
  const words = Array.isArray(value?.args) ? value.args.map(String) : [];
  const stdin = stdinOf(value);
  const wasi = new WASI({
    version: 'preview1',
    args: [order.name ?? 'main.wasm', ...words],
    env: environment(value),
    preopens: { '.': folder, [folder]: folder, '/tmp': '/tmp' },
    stdin,
    stdout: 1,
    stderr: 2,
    returnOnExit: true,
  });
  try {
    const status = wasi.start(new WebAssembly.Instance(module, wasi.getImportObject()));
    if (status)
      throw new WasmError('ExitStatus', `the module ended with status ${status}`, status & 0xff);
  } finally {
    if (stdin !== 0) fs.closeSync(stdin);
  }
  return undefined;
}

function describeExports(module) {
  const names = WebAssembly.Module.exports(module)
    .filter((one) => one.kind === 'function')
    .map((one) => one.name);
  return names.length > 0 ? `it exports ${names.slice(0, 20).join(', ')}` : 'it exports none';
}

function callFunction(module, value) {
  const { call: name, args = [] } = value ?? {};
  const needs = WebAssembly.Module.imports(module).find((one) => one.kind === 'function');
  if (typeof name !== 'string')
    throw new WasmError(
      'TypeError',
      `the module has no _start: name a function in the input, {"call": "name", "args": [1]}; ${describeExports(module)}`,
    );
  if (needs && needs.module !== 'wasi_snapshot_preview1')
    throw new WasmError('LinkError', `the module wants ${needs.module}.${needs.name}, which is not here`);
  const { WASI } = require('node:wasi');
  const wasi = new WASI({ version: 'preview1', returnOnExit: true });
  const instance = new WebAssembly.Instance(module, wasi.getImportObject());
  const fn = instance.exports[name];
  if (typeof fn !== 'function')
    throw new WasmError('TypeError', `there is no function '${name}'; ${describeExports(module)}`);
  if (instance.exports._initialize) wasi.initialize(instance);
  const wide = (n) => (typeof n === 'string' && /^-?\d+$/.test(n) ? BigInt(n) : n); // for i64
  return fn(...args.map(wide));
}

function load(order, value, folder) {
  const module = new WebAssembly.Module(bytesOf(order, folder));
  const isCommand = WebAssembly.Module.exports(module).some((one) => one.name === '_start');
  return {
    call: () =>
      isCommand ? runCommand(module, order, value, folder) : callFunction(module, value),
  };
}

module.exports = { load };
