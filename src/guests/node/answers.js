// SPDX-License-Identifier: Apache-2.0
/*
 * answers.js - turns a JavaScript value into JSON text.
 *
 * As JSON.stringify() has it: undefined, functions and symbols are dropped (null in arrays), NaN
 * and Infinity are null, a Date is ISO 8601 text, a RegExp is {}. Beyond that:
 *
 *     BigInt                       a number with all its digits
 *     Map                          an object; a key that is no text becomes its text
 *     Set                          an array
 *     Error                        { name, message }
 *     Buffer, Uint8Array           { base64 }
 *     other typed arrays           an array
 *
 * A value that contains itself has no JSON: JSON.stringify() throws, and that is the user's error.
 */
'use strict';

const { stringify, rawJSON } = JSON;
const { isMap, isSet, isTypedArray, isUint8Array, isAnyArrayBuffer, isNativeError } =
  require('node:util').types;

function keyText(key) {
  return typeof key === 'object' && key !== null ? stringify(key) : String(key);
}

/* Called with the holder as `this`, because toJSON() has already been at `value`. */
function replace(key, value) {
  if (typeof value === 'bigint') return rawJSON(value.toString());
  const own = this[key];
  if (typeof own !== 'object' || own === null) return value;
  if (isMap(own)) return Object.fromEntries(Array.from(own, ([k, v]) => [keyText(k), v]));
  if (isSet(own)) return Array.from(own);
  if (isUint8Array(own))
    return { base64: Buffer.from(own.buffer, own.byteOffset, own.byteLength).toString('base64') };
  if (isAnyArrayBuffer(own)) return { base64: Buffer.from(own).toString('base64') };
  if (isTypedArray(own)) return Array.from(own);
  if (isNativeError(own) && value === own) return { name: own.name, message: own.message, ...own };
  return value;
}

/** JSON text, or undefined when there is no answer. */
function toJson(value) {
  return stringify(value, replace);
}

module.exports = { toJson };
