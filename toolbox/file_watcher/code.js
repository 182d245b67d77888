// SPDX-License-Identifier: Apache-2.0
// File Watcher: what happens in a directory for a while. chokidar, where it is installed, watches;
// otherwise we look ourselves every 50 ms, which works wherever there are files.
const fs = require("fs");
const path = require("path");

let chokidar = null;
try { chokidar = require("chokidar"); } catch { /* the standard library is enough */ }

const folder = input?.path ?? ".";
const duration = Math.min(Math.max(Number(input?.duration_ms ?? 5000) || 5000, 1), 5000);
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function snapshot() {
  const seen = new Map();
  for (const name of fs.readdirSync(folder)) {
    try {
      const at = fs.statSync(path.join(folder, name), { bigint: true });
      if (at.isFile()) seen.set(name, `${at.mtimeNs}:${at.size}`);
    } catch { /* gone while we looked */ }
  }
  return seen;
}

function compare(before, after, events) {
  for (const [name, mark] of after)
    if (!before.has(name)) events.push({ event: "add", path: name });
    else if (before.get(name) !== mark) events.push({ event: "change", path: name });
  for (const name of before.keys())
    if (!after.has(name)) events.push({ event: "unlink", path: name });
}

try {
  const events = [];
  if (chokidar) {
    const watcher = chokidar.watch(folder, { ignoreInitial: true, depth: 0 });
    for (const event of ["add", "change", "unlink"])
      watcher.on(event, (name) => events.push({ event, path: path.relative(folder, name) }));
    await wait(duration);
    await watcher.close();
  } else {
    const end = Date.now() + duration;
    for (let before = snapshot(); Date.now() < end;) {
      await wait(Math.min(50, Math.max(end - Date.now(), 1)));
      const after = snapshot();
      compare(before, after, events);
      before = after;
    }
  }
  return { success: true, data: { path: folder, durationMs: duration, events } };
} catch (why) {
  return { success: false, error: `${why.name}: ${why.message}` };
}
