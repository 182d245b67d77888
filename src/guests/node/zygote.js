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
  'wasi',
  'zlib',
];

/* What people write, in the languages' breadth: what parses it is compiled piece by piece, too. */
const PLAIN = `
  const { a, ...rest } = { a: 1, b: [1, 2] }, f = async (x = 2, ...more) => x ** more.length;
  class Shape { #side = 1; static count = 0; get side() { return this.#side; } grow(by) { this.#side += by; } }
  function* each(list) { for (let i = 0; i < list.length; i++) yield list[i]?.name ?? i; }
  let total = 0, text = \`\${a} of \${rest.b?.[0]}\`;
  for (const [key, value] of Object.entries(rest)) if (key !== 'c' && value) total -= -1; else break;
  do { total++; } while (total < 3);
  switch (total) { case 1: text += 'one'; break; default: text = text.replace(/o(n)e/gi, '$1'); }
  try { if (!text) throw new Error('none'); } catch (error) { total = typeof error === 'object' ? 1 : 0; } finally { a in rest; }
  return [total, text, await f(1), [...each([{ name: 'x' }])].map((n) => n), new Shape().side];`;
const TYPED = `
  type Pair<K extends string, V = number> = { readonly key: K; value?: V | null } & Record<string, unknown>;
  interface Shape<T> extends Object { area(this: Shape<T>, ...by: number[]): T; [name: string]: unknown }
  abstract class Base<T> { protected items: T[] = []; static made?: number; abstract get size(): number;
    add<U extends T>(item: U, count: number = 1): this { this.items.push(item as T); return this; } }
  function pick<T, K extends keyof T>(from: T, key: K): T[K] { return from[key]!; }
  const f = async (x: string, y?: number): Promise<[string, number]> => [x, y ?? 0] as const as any;
  const sizes = { small: 1, large: 2 } satisfies Record<string, number>;
  let list: Array<Pair<'a'>> = [], seen = new Map<string, number[]>(), shape = {} as Partial<Shape<number>>;
  for (const [key, value] of Object.entries(sizes) as [string, number][]) seen.set(key, [value]);
  try { pick(sizes, 'small'); } catch (error: unknown) { if (error instanceof Error) throw error; }
  return [list.length, await f('x'), seen.get('small')?.[0]];`;

/*
 * Each form of code once: the wrapper, the parser, both TypeScript modes, answers, output, errors.
 * V8 compiles a function when it is first called; so the whole way of an order is gone here.
 */
const REHEARSAL = [
  ['javascript', PLAIN],
  ['javascript', 'import { join } from "node:path";\nexport default join("a", "b");'],
  ['javascript', 'const x = await demo.list({ n }); return x', ['demo'], { n: 1 }],
  ['javascript', 'return input', undefined, { n: 1, list: [1, 'x'] }],
  ['javascript', 'null.x'],
  ['javascript', 'let = ;'],
  ['typescript', TYPED],
  ['typescript', 'interface P { x: number }\nconst p: P = { x: 1 };\nreturn p.x as number;'],
  [
    'typescript',
    'enum Colour { Red, Green }\nclass C { constructor(private n: number) {} }\nreturn Colour.Red;',
  ],
];

/* Once more in the cell itself. A forked process copies each page it first writes to. */
const IN_CELL = [
  ['javascript', 'console.log(1)'],
  ['javascript', 'console.log(1)', ['demo']],
  [
    'javascript',
    'console.log(`${1}`, { a: [1, "x"] }, new Map([[1, new Set([2])]]), new Error("x")); return 1n',
  ],
  ['javascript', '[1, 2].map((n) => n * n)'],
  ['typescript', 'const x: number = 1; console.log(x)'],
];

/* Until V8 has compiled what every run goes through. Worth the time only where many runs follow. */
const REHEARSALS = Number(process.argv[2] ?? 5);

/** A stage without an audience, where every tool answers. */
function makeStage() {
  const stage = { recv: () => null, limit: native.limit, exit() {}, leave() {}, watch() {}, setAwaited() {} };
  stage.send = (fd, text) => {
    const { op, id, call } = JSON.parse(text);
    const answer = { op: 'answer', id, call, value: [1] };
    if (op === 'call') queueMicrotask(() => stage.desk.take(answer, []));
  };
  return stage;
}

/*
 * As the daemon writes it: to V8 an object with other members, or in another order, is another kind
 * of object, and what it has compiled for one kind it throws away when the other comes.
 */
function orderOf(language, code, input, tools) {
  const limits = { cpu_seconds: 0, data_bytes: 0, file_bytes: 0, processes: 0, descriptors: 0 };
  const head = { op: 'run', id: 1, language, name: 'main.js', code };
  const more = tools ? { tools, argument_bytes: 1000 } : {};
  return JSON.stringify({ ...head, input, env: {}, limits, ...more, keep: false });
}

async function rehearse(streams, pieces) {
  const mute = (isMuted) =>
    Object.values(streams).forEach((stream) => {
      stream.isMuted = isMuted;
    });
  mute(true);
  for (const [language, code, tools, input] of pieces) {
    const stage = makeStage();
    const guest = new Guest(-1, stage);
    stage.desk = guest.desk;
    await guest.handle(JSON.parse(orderOf(language, code, input, tools)), []);
    guest.drained();
    process.emit('exit', 0);
    process.removeListener('exit', guest.finish);
  }
  mute(false);
  process.exitCode = undefined;
}

/**
 * While we warm, V8 is to compile what every run goes through, but not to optimise it: a small run
 * gains nothing from that, and the compiler, which has no thread of its own here, would take its
 * turn in the middle of one. For the user's code it is switched on again.
 */
function optimise(isOn) {
  for (const flag of ['opt', 'maglev'])
    require('node:v8').setFlagsFromString(`--${isOn ? '' : 'no-'}${flag}`);
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
  optimise(false);
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
  for (let i = 0; i < REHEARSALS; i++) await rehearse(streams, [...REHEARSAL, ...IN_CELL]);
  collect();
  native.announce(
    ORDERS,
    JSON.stringify({ language: 'javascript', version: process.version.slice(1) }),
  );
  setImmediate(async () => {
    const guest = new Guest(native.serve(ORDERS), native);
    reseed();
    if (native.isAhead()) await rehearse(streams, IN_CELL); // better before a request waits
    optimise(true);
    guest.attach().serve();
  });
}

main();
