// SPDX-License-Identifier: Apache-2.0
/*
 * zygote.js - warms Node.js once, then forks it into cells.
 *
 *     UV_USE_IO_URING=0 node --single-threaded --v8-pool-size=0 --disable-sigusr1 --expose-internals
 *         --no-warnings zygote.js
 *
 * Started by the warden with its orders on descriptor 3. Two things it must not do: use libuv's
 * thread pool (threads are not forked; it starts anew in each cell), and draw random numbers (what is
 * left in a cache would be the same in every cell).
 */
'use strict';

const ORDERS = 3;

const native = require('./retort_guest.node');
const { Guest, openStreams } = require('./guest.js');
const { compile } = require('./compiling.js');
const { toJson } = require('./answers.js');
const { describe } = require('./faults.js');

/* Modules that are loaded at first use: better once here than in every cell. */
const COMMON = ['assert', 'async_hooks', 'buffer', 'child_process', 'crypto', 'events', 'fs', 'fs/promises',
                'module', 'os', 'path', 'perf_hooks', 'querystring', 'readline', 'stream', 'stream/promises',
                'string_decoder', 'timers', 'timers/promises', 'url', 'util', 'vm', 'zlib'];

/* Each form of code once: the wrapper, the parser, both TypeScript modes, an answer, two errors. */
const REHEARSAL = [
  ['javascript', '2 + 2'],
  ['javascript', 'const x = [1, 2, 3].map((n) => n * 2); return { x, when: new Date(0), m: new Map([[1, 2n]]) };'],
  ['javascript', 'import { join } from "node:path";\nexport default join("a", "b");'],
  ['javascript', 'null.x'],
  ['javascript', 'let = ;'],
  ['typescript', 'interface P { x: number }\nconst p: P = { x: 1 };\nreturn p.x as number;'],
  ['typescript', 'enum Colour { Red, Green }\nclass C { constructor(private n: number) {} }\nreturn Colour.Red;'],
];

async function rehearse() {
  for (const [language, code] of REHEARSAL) {
    for (const keep of [false, true]) {
      try {
        const options = { language, filename: 'main.js', folder: '/', keep, values: { input: null } };
        toJson(await compile(code, options).call());
      } catch (error) {
        describe(error, new Map([['main.js', null]]));
      }
    }
  }
}

/** console.log() finds process.stdout when first used and keeps it; ours has no handle to keep. */
function rehearseConsole(streams) {
  for (const stream of Object.values(streams)) stream.isMuted = true;
  console.log('%s %d', 'a', 1, { a: [1, 'x', null], m: new Map([[1, new Set([2])]]) }, [1.5], new Error('x'));
  console.error('x');
  for (const stream of Object.values(streams)) stream.isMuted = false;
}

/** acorn is reachable through --expose-internals; users need not see the rest of Node's insides. */
function hideInternals() {
  const { BuiltinModule } = require('internal/bootstrap/realm');
  for (const [id, module] of BuiltinModule.map) if (id.startsWith('internal/')) module.canBeRequiredByUsers = false;
  for (const list of ['canBeRequiredByUsersList', 'canBeRequiredByUsersWithoutSchemeList'])
    if (BuiltinModule[list]?.delete)
      for (const id of [...BuiltinModule[list]]) if (id.startsWith('internal/')) BuiltinModule[list].delete(id);
}

/** V8 seeds Math.random() at its first use, which is in the cell; a forked entropy pool would repeat. */
function reseed() {
  const seed = require('node:crypto').randomBytes(4).readUInt32LE() & 0x7fffffff;
  require('node:v8').setFlagsFromString(`--random-seed=${seed || 1}`);
  Object.defineProperty(process, 'pid', { value: native.pid(), configurable: true, enumerable: true });
}

async function main() {
  Error.stackTraceLimit = 30;
  const streams = openStreams();
  for (const name of COMMON) require(`node:${name}`);
  for (const name of ['fetch', 'Headers', 'URL', 'TextEncoder', 'AbortController', 'structuredClone', 'performance'])
    void globalThis[name];
  await rehearse();
  rehearseConsole(streams);
  hideInternals();
  native.announce(ORDERS, JSON.stringify({ language: 'javascript', version: process.version.slice(1) }));
  setImmediate(() => {
    const control = native.serve(ORDERS);
    reseed();
    new Guest(control, native).serve();
  });
}

main();
