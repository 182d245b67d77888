// SPDX-License-Identifier: Apache-2.0
/*
 * zygote.js - warms Node.js once, then forks it into cells.
 *
 *     UV_USE_IO_URING=0 node --single-threaded --v8-pool-size=0 --disable-sigusr1
 *         --expose-internals --no-warnings --no-flush-bytecode zygote.js
 *
 * --expose-internals is for Node's own parser (compiling.js); that user code can reach Node's
 * insides too is no harm, the cell is the wall.
 *
 * Started by the warden with its orders on descriptor 3. Two things it must not do: use libuv's
 * thread pool (threads are not forked; it starts anew in each cell), and draw random numbers (what
 * is left in a cache would be the same in every cell).
 */
'use strict';

const ORDERS = 3;

const native = require('./retort_guest.node');
const { Guest, openStreams } = require('./guest.js');

/* Modules that are loaded at first use: better once here than in every cell. */
const COMMON = [
  'assert',
  'async_hooks',
  'buffer',
  'child_process',
  'crypto',
  'events',
  'fs',
  'fs/promises',
  'module',
  'os',
  'path',
  'perf_hooks',
  'querystring',
  'readline',
  'stream',
  'stream/promises',
  'string_decoder',
  'timers',
  'timers/promises',
  'url',
  'util',
  'vm',
  'zlib',
];

/*
 * Each form of code once: the wrapper, the parser, both TypeScript modes, answers, output, errors.
 * V8 compiles a function when it is first called; so the whole way of an order is gone here.
 */
const REHEARSAL = [
  [
    'javascript',
    'console.log(`${1}`, { a: [1, "x"] }, new Map([[1, new Set([2])]]), new Error("x")); return 1n',
  ],
  ['javascript', '[1, 2].map((n) => n * n)'],
  ['javascript', 'import { join } from "node:path";\nexport default join("a", "b");'],
  ['javascript', 'const x = await demo.list({ n }); return x', ['demo']],
  ['javascript', 'null.x'],
  ['javascript', 'let = ;'],
  ['typescript', 'interface P { x: number }\nconst p: P = { x: 1 };\nreturn p.x as number;'],
  [
    'typescript',
    'enum Colour { Red, Green }\nclass C { constructor(private n: number) {} }\nreturn Colour.Red;',
  ],
];

/* Until V8 has compiled what every run goes through. Worth the time only where many runs follow. */
const REHEARSALS = Number(process.argv[2] ?? 5);

/** A stage without an audience, where every tool answers. */
function makeStage() {
  const stage = { recv: () => null, limit() {}, exit() {}, leave() {}, watch() {}, setAwaited() {} };
  stage.send = (fd, text) => {
    const { op, id, call } = JSON.parse(text);
    const answer = { op: 'answer', id, call, value: [1] };
    if (op === 'call') queueMicrotask(() => stage.desk.take(answer, []));
  };
  return stage;
}

async function rehearse(streams, pieces) {
  const mute = (isMuted) =>
    Object.values(streams).forEach((stream) => {
      stream.isMuted = isMuted;
    });
  mute(true);
  for (const [language, code, tools] of pieces) {
    const stage = makeStage();
    const guest = new Guest(-1, stage);
    stage.desk = guest.desk;
    await guest.handle(
      { op: 'run', id: 1, language, code, name: 'main.js', input: { n: 1 }, env: {}, tools },
      [],
    );
    guest.finish(0);
  }
  mute(false);
  process.exitCode = undefined;
}

/** V8 seeds Math.random() at its first use, in the cell; a forked entropy pool would repeat. */
function reseed() {
  const seed = require('node:crypto').randomBytes(4).readUInt32LE() & 0x7fffffff;
  require('node:v8').setFlagsFromString(`--random-seed=${seed || 1}`);
  Object.defineProperty(process, 'pid', {
    value: native.pid(),
    configurable: true,
    enumerable: true,
  });
}

/** So that what a cell inherits is compact, and no collection is due soon: it would copy the heap. */
function collect() {
  require('node:v8').setFlagsFromString('--expose-gc');
  require('node:vm').runInNewContext('gc')();
  require('node:v8').setFlagsFromString('--no-expose-gc');
}

async function main() {
  Error.stackTraceLimit = 30;
  const streams = openStreams();
  for (const name of COMMON) require(`node:${name}`);
  for (const name of [
    'fetch',
    'Headers',
    'URL',
    'TextEncoder',
    'AbortController',
    'structuredClone',
    'performance',
  ])
    void globalThis[name];
  for (let i = 0; i < REHEARSALS; i++) await rehearse(streams, REHEARSAL);
  collect();
  native.announce(
    ORDERS,
    JSON.stringify({ language: 'javascript', version: process.version.slice(1) }),
  );
  setImmediate(async () => {
    const guest = new Guest(native.serve(ORDERS), native);
    reseed();
    /* A forked process copies each page it first writes to: better before a request waits. */
    if (native.isAhead()) await rehearse(streams, [REHEARSAL[0], REHEARSAL[1], REHEARSAL[6]]);
    guest.attach().serve();
  });
}

main();
