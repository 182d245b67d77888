// SPDX-License-Identifier: Apache-2.0
/*
 * dates.js - small questions about dates that code around tools keeps asking.
 *
 *     commits.filter((c) => isLastWeek(c.date))
 *
 * A date is a Date, what Date.parse() takes, or a Unix time in seconds or milliseconds. What is no
 * date is never last week.
 */
'use strict';

const DAY_MS = 86_400_000;
const MILLISECONDS = 1e11; // as seconds that is the year 5138

function toMs(value) {
  if (typeof value === 'number') return Math.abs(value) > MILLISECONDS ? value : value * 1000;
  return value instanceof Date ? value.getTime() : Date.parse(value);
}

/** How many days have passed since then; negative for what is still to come, NaN for no date. */
function daysAgo(value) {
  return (Date.now() - toMs(value)) / DAY_MS;
}

const isWithin = (value, days) => daysAgo(value) >= 0 && daysAgo(value) <= days;

/** In the seven days up to now. */
const isLastWeek = (value) => isWithin(value, 7);

/** In the thirty days up to now. */
const isLastMonth = (value) => isWithin(value, 30);

module.exports = { daysAgo, isLastWeek, isLastMonth };
