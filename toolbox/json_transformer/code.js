// SPDX-License-Identifier: Apache-2.0
// JSON Transformer: the same data under other keys. lodash, where it is installed, walks objects.
let lodash = null;
try { lodash = require("lodash"); } catch { /* the standard library is enough */ }

const isObject = (x) => x !== null && typeof x === "object" && !Array.isArray(x);

function rename(data, names) {
  if (Array.isArray(data)) return data.map((item) => rename(item, names));
  if (!isObject(data)) return data;
  if (lodash) return lodash.transform(data, (out, value, key) => { out[names.get(key) ?? key] = rename(value, names); }, {});
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [names.get(key) ?? key, rename(value, names)]));
}

if (!input || !("data" in input)) return { success: false, error: "data is missing" };
if (!isObject(input.mapping)) return { success: false, error: "mapping is no object of names" };
return { success: true, data: rename(input.data, new Map(Object.entries(input.mapping))) };
