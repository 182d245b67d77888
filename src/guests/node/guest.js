// SPDX-License-Identifier: Apache-2.0
/*
 * guest.js - runs the user's JavaScript and TypeScript inside a cell: frames in, answers out.
 *
 *     new Guest(control, port).attach().serve();
 *
 * A run ends, as in Node, when its promise has settled and the event loop has nothing left to do;
 * its 'exit' handlers run, then the answer is sent. With "keep" it ends when the promise settles,
 * and the next frame is awaited with all state in place.
 *
 * Output is written synchronously: nothing is lost when the process ends, and print order is true.
 *
 * What must stay true: whatever user code does short of killing the process, each order gets its
 * one frame or an exit status.
 */
'use strict';

const fs = require('node:fs');
const { createRequire, Module } = require('node:module');
const { Writable } = require('node:stream');
const { compile, isVariable } = require('./compiling.js');
const { toJson } = require('./answers.js');
const { describe } = require('./faults.js');
const { Guard } = require('./imports.js');
const preludes = require('./preludes.js');
const { load: loadWasm } = require('./wasm.js');
const branching = require('./branching.js');
const { Desk } = require('./desk.js');

const { parse, stringify } = JSON;
const { writeSync } = fs;
const later = setImmediate;

const FRAME_MAX = 64 << 20;
const SCRIPTS_MAX = 500; // of a session's runs, whose source maps are kept
const ENV_INPUT_MAX = 100 * 1024; // beyond it one variable no longer fits exec()
const BASE_ENV = {
  PATH: '/usr/local/bin:/usr/bin:/bin',
  HOME: '/work',
  TMPDIR: '/tmp',
  LANG: 'C.UTF-8',
};
const LIMITS = ['cpu_seconds', 'data_bytes', 'file_bytes', 'processes', 'descriptors'];
const pause = new Int32Array(new SharedArrayBuffer(4));

/* -- output -------------------------------------------------------------------------------- */

function writeAll(fd, data) {
  for (let done = 0; done < data.length;) {
    try {
      done += writeSync(fd, data, done);
    } catch (error) {
      if (error.code !== 'EAGAIN') return; // nobody reads any more
      Atomics.wait(pause, 0, 0, 1);
    }
  }
}

/** A process.stdout without a handle: a descriptor number, which a fork may give a new meaning. */
class Output extends Writable {
  constructor(fd) {
    super({ decodeStrings: true });
    this.fd = fd;
    this.isMuted = false;
  }

  _write(chunk, encoding, done) {
    if (this.isMuted) writeSync(this.fd, chunk, 0, 0); // all the way, with nothing
    else writeAll(this.fd, chunk);
    done();
  }

  _destroy(error, done) {
    done(error);
  }
}

function openStreams() {
  const streams = { stdout: new Output(1), stderr: new Output(2) };
  for (const [name, stream] of Object.entries(streams))
    Object.defineProperty(process, name, {
      value: stream,
      configurable: true,
      enumerable: true,
      writable: true,
    });
  return streams;
}

/* -- the guest ----------------------------------------------------------------------------- */

class Guest {
  constructor(control, port) {
    this.control = control;
    this.port = port;
    this.folder = null; // known when the first run begins
    this.scripts = new Map();
    this.numbers = new Map(); // of runs, by the name of the script
    this.globals = new Set(); // names that sessions put on globalThis
    this.desk = new Desk(control, port);
    this.placed = new Map(); // what a session's code finds there to call
    this.run = null;
    this.isExiting = false;
    this.isWatched = false; // whether interrupts reach us
    this.answerMax = FRAME_MAX;
    this.finish = this.finish.bind(this);
  }

  /** Takes over how the process ends. Apart from the constructor so that a rehearsal does not. */
  attach() {
    const { exit } = process;
    process.reallyExit = (status) => this.port.exit(Number(status) & 0xff);
    process.exit = (...status) => this.exit(exit, status);
    process.on('uncaughtException', (error) => this.stray('uncaughtException', error));
    process.on('unhandledRejection', (reason) => this.stray('unhandledRejection', reason));
    process.on('beforeExit', () => this.drained());
    return this;
  }

  serve() {
    const frame = this.port.recv(this.control);
    if (frame === null) this.port.exit(0);
    const order = parse(frame.data ?? frame);
    const fds = frame.fds ?? [];
    if (order.op === 'branch') this.branch(order);
    else if (order.op === 'answer') this.overhear(order, fds);
    else this.handle(order, fds);
  }

  /** It was on its way when the run ended that had asked. */
  overhear(answer, fds) {
    this.desk.take(answer, fds);
    this.serve();
  }

  /* -- sessions ------------------------------------------------------------------------------ */

  /** A run that stays can be interrupted; its stdin, if it wants one, is its own. */
  keep(order) {
    this.answerMax = Math.min(FRAME_MAX, order.answer_bytes ?? FRAME_MAX);
    if (!this.isWatched) this.port.onInterrupt(() => this.interrupted());
    this.isWatched = true;
    let stdin = null;
    Object.defineProperty(process, 'stdin', {
      configurable: true,
      enumerable: true,
      get: () => (stdin ??= fs.createReadStream(null, { fd: 0, autoClose: false })),
    });
    this.port.setRunning(true);
  }

  /** V8 has dropped whatever it was doing; timers and promises of the run are no longer awaited. */
  interrupted() {
    const { run } = this;
    if (run.reply !== null) later(() => this.next(run));
    else {
      const error = new Error('the run was interrupted');
      error.name = 'KeyboardInterrupt';
      this.settle(run, { error });
    }
  }

  /** Says whether we can be copied, and waits for it; what comes back may be the copy. */
  branch(order) {
    const found = branching.obstacles(this.port);
    if (found) {
      this.port.send(this.control, stringify({ op: 'error', id: order.id, message: found }));
    } else {
      const place = branching.remember();
      this.port.send(this.control, stringify({ op: 'ready', id: order.id }));
      if (this.port.park(this.control)) branching.arrive(this.port, place);
    }
    later(() => this.serve());
  }

  async handle(order, fds) {
    const run = {
      id: order.id,
      keep: Boolean(order.keep),
      reply: null,
      hasFailed: false,
      isSent: false,
    };
    this.run = run;
    try {
      const value = inputOf(order, fds, this.port);
      if (this.folder === null) this.begin(order);
      if (run.keep) this.keep(order);
      this.prepare(order, value);
      const { call } =
        order.language === 'wasm'
          ? loadWasm(order, value, this.folder)
          : this.compile(order, value, run.keep);
      this.settle(run, { json: toJson(await call()) });
    } catch (error) {
      this.settle(run, { error });
    }
  }

  begin(order) {
    const limits = order.limits ?? {};
    this.port.limit(...LIMITS.map((name) => Number(limits[name] ?? 0)));
    process.chdir('.'); // Node remembers where the zygote was
    this.folder = process.cwd();
    for (const name of Object.keys(process.env)) delete process.env[name];
    Object.assign(process.env, BASE_ENV);
  }

  prepare(order, value) {
    Object.assign(process.env, order.env);
    process.argv = [process.execPath, `${this.folder}/${order.name ?? 'main.js'}`];
    process.execArgv = [];
    if (value === undefined) return;
    const text = stringify(value);
    delete process.env.INPUT;
    if (Buffer.byteLength(text) < ENV_INPUT_MAX) process.env.INPUT = text;
  }

  compile(order, value, keep) {
    const filename = this.filename(order.name ?? 'main.js', keep);
    const guard = order.allowed_imports ? new Guard(order.allowed_imports) : null;
    this.scripts.set(filename, null);
    const values = this.variables(filename, value, guard, order);
    if (order.tools || this.placed.size > 0) this.placeTools(order, values, keep);
    const compiled = compile(order.code ?? '', {
      language: order.language,
      filename,
      folder: this.folder,
      keep,
      values,
      check: guard && ((...args) => guard.check(...args)),
    });
    this.scripts.set(filename, compiled.locate ?? null);
    return compiled;
  }

  /** In a session every run's source map stays known, so a second main.js gets a number. */
  filename(name, keep) {
    const count = (this.numbers.get(name) ?? 0) + 1;
    this.numbers.set(name, count);
    if (this.scripts.size >= SCRIPTS_MAX) this.scripts.delete(this.scripts.keys().next().value);
    return keep && count > 1 ? `${name}[${count}]` : name;
  }

  /** What the code sees as variables. A session finds them on globalThis in its next run too. */
  variables(filename, value, guard, { keep, prelude }) {
    const path = `${this.folder}/${filename}`;
    const require = createRequire(path);
    const module = new Module(path);
    const variables = {
      require: guard ? guard.wrap(require) : require,
      module,
      exports: module.exports,
      __filename: path,
      __dirname: this.folder,
    };
    if (prelude) {
      this.scripts.set(prelude.name, null);
      Object.assign(variables, preludes.load(prelude, this.folder, variables.require));
    }
    if (value !== undefined || !this.globals.has('input'))
      Object.assign(variables, { input: value ?? null, inputs: value === undefined ? {} : value });
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      for (const key of Object.keys(value))
        if (!(key in variables) && isVariable(key)) variables[key] = value[key];
    return keep ? this.shareVariables(variables) : variables;
  }

  /** Under names that neither the language nor the code has taken. */
  placeTools(order, variables, keep) {
    for (const [name, ours] of this.placed) if (globalThis[name] === ours) delete globalThis[name];
    this.placed.clear();
    this.desk.begin(order);
    if (!order.tools) return;
    for (const [name, thing] of Object.entries(this.desk.objects(order.tools))) {
      if (name in variables || name in globalThis || !isVariable(name)) continue;
      if (keep) this.placed.set(name, (globalThis[name] = thing));
      else variables[name] = thing;
    }
  }

  shareVariables(variables) {
    const own = {};
    for (const [name, value] of Object.entries(variables)) {
      if (name in globalThis && !this.globals.has(name) && !this.placed.has(name)) {
        own[name] = value; // `performance` of the input hides the global of that name, once
        continue;
      }
      this.globals.add(name);
      globalThis[name] = value;
    }
    return own;
  }

  /* -- ends ---------------------------------------------------------------------------------- */

  /**
   * `outcome` is { json } or { error }; undefined can be either. An error that comes after the
   * answer, while the event loop drains, takes its place.
   */
  settle(run, outcome) {
    const failed = 'error' in outcome;
    if (run !== this.run || run.hasFailed || (run.reply !== null && (run.keep || !failed))) return;
    run.hasFailed = failed;
    if (failed)
      run.reply = stringify({ op: 'error', id: run.id, ...describe(outcome.error, this.scripts) });
    else
      run.reply =
        `{"op":"result","id":${stringify(run.id)}` +
        (outcome.json === undefined ? '}' : `,"value":${outcome.json}}`);
    if (run.keep) later(() => this.next(run));
    else if (failed) this.fail();
  }

  /** An interrupt may end this before it has begun; it is then called again. */
  next(run) {
    this.port.setRunning(false);
    if (run.isSent) return;
    run.isSent = true;
    this.desk.end();
    this.send();
    this.serve();
  }

  /** An error ends a run at once, whatever the event loop still has. */
  fail() {
    process.exitCode = 1;
    try {
      process.emit('exit', 1);
    } catch {
      // an exit handler of the user's that fails changes nothing
    }
    this.send();
    this.port.leave(this.control, 1);
  }

  /** The loop is empty. Moves our exit handler behind the user's; Node calls them all next. */
  drained() {
    const { run } = this;
    if (run.reply === null)
      this.settle(run, { error: new Error('the code awaits something that will never happen') });
    else if (run.keep) return;
    process.removeListener('exit', this.finish);
    process.on('exit', this.finish);
  }

  finish(status) {
    if (this.isExiting || this.run.keep) return;
    const own = Number(process.exitCode ?? status ?? 0) & 0xff;
    if (own !== 0) this.run.reply = `${this.run.reply.slice(0, -1)},"status":${own}}`;
    this.send();
    this.port.leave(this.control, own);
  }

  send() {
    let text = this.run.reply;
    if (Buffer.byteLength(text) > this.answerMax)
      text = stringify({
        op: 'error',
        id: this.run.id,
        type: 'RuntimeError',
        name: 'RangeError',
        message:
          `the answer has ${text.length} bytes and at most ${this.answerMax} fit; ` +
          'write it to a file in out/',
      });
    this.port.send(this.control, text);
  }

  exit(exit, status) {
    if (!this.run?.keep) {
      this.isExiting = true;
      return exit.apply(process, status);
    }
    const error = new Error(`process.exit(${status}) was called; a session stays`);
    error.name = 'SystemExit';
    throw error;
  }

  /** An error nobody waited for. User code that listens for them itself has dealt with it. */
  stray(event, error) {
    if (process.listenerCount(event) <= 1) this.settle(this.run, { error });
  }
}

function inputOf(order, fds, port) {
  try {
    if (order.stdin_fd !== undefined) port.replace(fds[order.stdin_fd], 0);
    if (!order.input_fd) return order.input;
    const text = readWhole(fds[order.input_fd.index]);
    return order.input_fd.type === 'text' ? text : parse(text);
  } finally {
    for (const fd of fds) fs.closeSync(fd);
  }
}

/** From its beginning, wherever the sender left the position. */
function readWhole(fd) {
  const data = Buffer.alloc(fs.fstatSync(fd).size);
  let done = 0;
  for (
    let n;
    done < data.length && (n = fs.readSync(fd, data, done, data.length - done, done)) > 0;
  )
    done += n;
  return data.toString('utf8', 0, done);
}

module.exports = { Guest, openStreams };
