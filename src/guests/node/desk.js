// SPDX-License-Identifier: Apache-2.0
/*
 * desk.js - tools, called from the user's code: frames out, answers back to whom they belong.
 *
 *     const desk = new Desk(control, port);
 *     desk.begin(order);               // each run; `order` may grant tools
 *     desk.objects(['github']);        // { github, tools, mcp, pii, MCPToolError, ... }
 *     desk.end();                      // the run is over, and with it its calls
 *
 * Any property of a server's object is a tool; the daemon knows which there are. A call is a promise,
 * and while one is pending the event loop stays; libuv tells when an answer has come. Calls are made
 * by name over a socket: no function and no code of one side ever reaches the other.
 *
 * What must stay true: an answer of an earlier run reaches nobody; no more than CALLS_MAX calls are
 * under way, the others wait here.
 */
'use strict';

const fs = require('node:fs');
const { inspect } = require('node:util');
const { toJson } = require('./answers.js');
const dates = require('./dates.js');

const { parse } = JSON;
const { closeSync } = fs;

const NO_FDS = [];
const CALLS_MAX = 64; // at a time; the daemon refuses more
const NAME = /^[A-Za-z0-9_-]{1,100}$/;
const SERVER = /^[A-Za-z0-9._-]{1,100}$/;
const FORBIDDEN = /__proto__|constructor|prototype|__(?:define|lookup)(?:Getter|Setter)__/;
/* What the language itself asks an object for: `await github`, JSON.stringify(github), `${github}`. */
const LANGUAGE = new Set(['then', 'toJSON', ...Object.getOwnPropertyNames(Object.prototype)]);

class MCPToolError extends Error {
  constructor(message, { tool, original, type } = {}) {
    super(message);
    this.name = 'MCPToolError';
    this.type = type ?? 'MCPToolError';
    this.toolName = tool;
    this.originalMessage = original ?? message;
    this.timestamp = new Date().toISOString();
  }
}

const isToolName = (name) => NAME.test(name) && !FORBIDDEN.test(name);

function checkName(name) {
  const [tool, server, ...more] = String(name).split(':').reverse();
  const isServer = server === undefined || SERVER.test(server);
  if (typeof name === 'string' && isToolName(tool) && isServer && more.length === 0) return name;
  throw new MCPToolError(
    `'${String(name).slice(0, 120)}' is not the name of a tool; one is "server:tool", ` +
      'each of letters, digits, _ and -',
    { tool: String(name).slice(0, 200) },
  );
}

class Desk {
  constructor(control, port) {
    this.control = control;
    this.port = port;
    this.run = null; // the one whose calls count
    this.argumentMax = 0;
    this.last = 0;
    this.waiting = new Map(); // who waits, by the numbers of their calls
    this.underWay = 0;
    this.backlog = [];
    this.isWatched = false;
    this.servers = new Map();
  }

  /* -- runs --------------------------------------------------------------------------------- */

  begin(order) {
    this.run = order.tools ? order.id : null;
    this.argumentMax = order.argument_bytes ?? 0;
  }

  /** The daemon has dropped what is under way; a promise of it stays as it is. */
  end() {
    this.run = null;
    this.waiting.clear();
    this.backlog = [];
    this.underWay = 0;
    if (this.isWatched) this.port.watch(this.control, null);
    this.isWatched = false;
  }

  /** What the code finds under which name. */
  objects(servers) {
    const found = {};
    this.servers = new Map(
      servers
        .filter((name) => SERVER.test(name))
        .map((name) => [name, this.servers.get(name) ?? serverObject(this, name)]),
    );
    for (const [name, server] of this.servers) found[variableOf(name)] = server;
    return {
      ...found,
      mcp: serversObject(this),
      tools: toolsObject(this),
      pii: piiObject(this),
      MCPToolError,
      ...dates,
    };
  }

  /* -- calls -------------------------------------------------------------------------------- */

  /* Async, so that an error is made where V8 knows who awaits it, and the stack names the user's line. */
  async call(tool, args) {
    const json = this.encode(tool, args);
    const message = await new Promise((resolve) => this.start(tool, json, resolve));
    if (message.failure) throw message.failure;
    const { error } = message;
    if (error !== undefined) throw new MCPToolError(error.message, { tool, ...error });
    return message.value;
  }

  encode(tool, args) {
    if (this.run === null) throw new MCPToolError('this run has no tools', { tool });
    if (args !== undefined && (typeof args !== 'object' || args === null || Array.isArray(args)))
      throw new TypeError(`${tool.replace(':', '.')}() takes its arguments as one object`);
    const json = args === undefined ? '{}' : toJson(args);
    const bytes = json.length * 4 > this.argumentMax ? Buffer.byteLength(json) : 0;
    if (bytes > this.argumentMax && this.argumentMax > 0)
      throw new MCPToolError(
        `the arguments of ${tool} have ${bytes} bytes and at most ${this.argumentMax} fit`,
        { tool },
      );
    return json;
  }

  start(tool, json, resolve) {
    const number = ++this.last;
    const frame = `{"op":"call","id":${this.run},"call":${number},"tool":"${tool}","arguments":${json}}`;
    this.waiting.set(number, resolve);
    if (!this.isWatched) this.port.watch(this.control, () => this.read());
    if (!this.isWatched || this.waiting.size === 1) this.port.setAwaited(true);
    this.isWatched = true;
    if (this.underWay >= CALLS_MAX) {
      this.backlog.push(frame);
      return;
    }
    this.underWay += 1;
    this.port.send(this.control, frame);
  }

  /* -- answers ------------------------------------------------------------------------------ */

  /** What was read along with a frame, libuv does not know of. */
  read() {
    do {
      const frame = this.port.recv(this.control);
      if (frame === null) this.port.exit(0);
      this.take(parse(frame.data ?? frame), frame.fds ?? NO_FDS);
    } while (this.port.hasMore());
  }

  take(message, fds) {
    if (message.op === 'answer' && message.id === this.run) {
      const resolve = this.waiting.get(message.call);
      this.waiting.delete(message.call);
      if (this.backlog.length > 0) this.port.send(this.control, this.backlog.shift());
      else this.underWay -= 1;
      if (this.waiting.size === 0) this.port.setAwaited(false);
      if (message.value_fd !== undefined) this.readValue(message, fds[message.value_fd]);
      resolve?.(message);
    }
    for (const fd of fds) closeSync(fd);
  }

  readValue(message, fd) {
    try {
      message.value = parse(this.port.readText(fd));
    } catch (error) {
      message.failure = error; // too long for a string, say
    }
  }
}

/* -- what the code sees ---------------------------------------------------------------------- */

/** "my-server" is myServer; what is an identifier stays as it is. */
function variableOf(server) {
  const name = server.replace(/[^A-Za-z0-9_]+(.?)/g, (all, next) => next.toUpperCase());
  return /^\d/.test(name) ? `_${name}` : name;
}

/** An object with whatever `find` gives for a name; the language's own questions it answers itself. */
function openObject(text, find) {
  const target = Object.create(null, {
    toString: { value: () => text },
    [inspect.custom]: { value: () => text },
  });
  return new Proxy(target, {
    get: (_, key) => (typeof key !== 'string' || LANGUAGE.has(key) ? target[key] : find(key)),
  });
}

function serverObject(desk, server) {
  const made = new Map();
  return openObject(`<tools of ${server}>`, (name) => {
    if (!made.has(name) && isToolName(name)) {
      const tool = `${server}:${name}`;
      made.set(name, (args) => desk.call(tool, args));
    }
    return made.get(name);
  });
}

function serversObject(desk) {
  return openObject(`<servers ${[...desk.servers.keys()].join(', ')}>`, (name) => {
    for (const [known, server] of desk.servers)
      if (known === name || variableOf(known) === name) return server;
    const names = [...desk.servers.keys()].join(', ') || 'none';
    throw new MCPToolError(`there is no server '${name.slice(0, 100)}'; there are: ${names}`);
  });
}

function toolsObject(desk) {
  return {
    call: async (name, args) => desk.call(checkName(name), args),
    search: (query, options = {}) =>
      desk.call('tools:search', {
        query,
        limit: 5,
        ...(typeof options === 'number' ? { limit: options } : options),
      }),
    describe: (name) => desk.call('tools:describe', { name }),
    list: () => desk.call('tools:list'),
  };
}

/** What is personal in a value: how much, and of which kinds. */
function piiObject(desk) {
  return {
    count: (value) => desk.call('pii:count', { value }),
    types: (value) => desk.call('pii:types', { value }),
  };
}

module.exports = { Desk, MCPToolError };
