// SPDX-License-Identifier: Apache-2.0
/*
 * branching.js - before and after a copy of the live interpreter is made.
 *
 *     const found = obstacles(port);           // a sentence, or null
 *     const place = remember();
 *     if (port.park(control)) arrive(port, place);   // true in the copy
 *
 * A copy has the memory and nothing else: no thread but the one that waits (libuv's pool starts anew),
 * no open file, no child process. What would be missing is an obstacle, and named.
 */
'use strict';

const fs = require('node:fs');
const crypto = require('node:crypto');

const OWN = 4; // descriptors 0 to 3 are ours, and every copy gets its own
const NAMES_MAX = 5;
const UUIDS_AHEAD = 128; // what node:crypto draws ahead and hands out one by one
const INTS_AHEAD = 1024;
const NUMBERS_AHEAD = 256;

const { readdirSync, readFileSync, readlinkSync } = fs;
const { randomFillSync, randomInt, randomUUID } = crypto;

function obstacles(port) {
  const found = [...threads(), ...processes(), ...descriptors(new Set(port.ownDescriptors()))];
  if (found.length === 0) return null;
  const more = found.length > NAMES_MAX ? `, and ${found.length - NAMES_MAX} more` : '';
  return `a branch cannot have ${found.slice(0, NAMES_MAX).join(', ')}${more}; end or close it first`;
}

/** What is gone before we look is no obstacle. */
function attempt(look) {
  try {
    return look();
  } catch {
    return null;
  }
}

function* threads() {
  for (const task of readdirSync('/proc/self/task')) {
    const name = attempt(() => readFileSync(`/proc/self/task/${task}/comm`, 'utf8').trim());
    if (Number(task) !== process.pid && name !== null && name !== 'libuv-worker')
      yield `a worker thread (${name})`;
  }
}

function* processes() {
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid) || pid === '1' || Number(pid) === process.pid) continue;
    const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
    const [, name, state] = /\((.*)\) (\S)/s.exec(stat ?? '') ?? [];
    if (name !== undefined && state !== 'Z') yield `the process '${name}'`;
  }
}

function* descriptors(own) {
  for (const fd of readdirSync('/proc/self/fd').map(Number)) {
    const target = fd < OWN || own.has(fd) ? null : attempt(() => readlinkSync(`/proc/self/fd/${fd}`));
    if (target === null) continue;
    if (target.startsWith('socket:')) yield `an open socket (descriptor ${fd})`;
    else if (target.startsWith('pipe:')) yield `an open pipe (descriptor ${fd})`;
    else if (target.startsWith('/')) yield `the open file ${target}`;
    else yield `descriptor ${fd} (${target})`;
  }
}

function remember() {
  return { folder: attempt(() => process.cwd()), mask: process.umask() };
}

function arrive(port, { folder, mask }) {
  Object.defineProperty(process, 'pid', { value: port.pid(), configurable: true, enumerable: true });
  attempt(() => process.chdir(folder ?? '.'));
  attempt(() => process.umask(mask));
  renewRandom();
}

/** What was drawn ahead is used up, and Math.random(), which cannot be seeded again, is replaced. */
function renewRandom() {
  for (let i = 0; i < UUIDS_AHEAD; i++) randomUUID();
  for (let i = 0; i < INTS_AHEAD; i++) randomInt(2);
  const numbers = new Uint32Array(2 * NUMBERS_AHEAD);
  let left = 0;
  const draw = {
    random() {
      if (left === 0) {
        randomFillSync(numbers);
        left = NUMBERS_AHEAD;
      }
      left -= 1;
      return (numbers[2 * left] * 0x200000 + (numbers[2 * left + 1] >>> 11)) / 2 ** 53;
    },
  };
  Object.defineProperty(Math, 'random', {
    value: draw.random,
    configurable: true,
    enumerable: false,
    writable: true,
  });
}

module.exports = { obstacles, remember, arrive };
