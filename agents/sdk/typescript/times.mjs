// Durations and points in time, as callers write them.

import { CallError } from "./errors.mjs";

const UNITS = { ms: 1e3, s: 1e6, m: 60e6, h: 3600e6, d: 86400e6 };
// A year, which is longer than any limit of the platform.
const LONGEST_US = 366 * 86400e6;

/** Microseconds of a duration: a number of seconds, or a text such as "90s", "1h 30m" or "500ms". */
export function duration(value, what) {
  const us = typeof value === "number" ? value * 1e6 : typeof value === "string" ? read(value) : NaN;
  if (!(us >= 0)) {
    throw new CallError(`${what} ${shown(value)} is not a duration; write a number of seconds, or a text such as "90s", "1h 30m" or "2d"`);
  }
  return Math.round(Math.min(us, LONGEST_US));
}

function read(text) {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*/gy)];
  const length = parts.reduce((sum, part) => sum + part[0].length, 0);
  if (parts.length === 0 || length !== text.length) return NaN;
  return parts.reduce((sum, part) => sum + Number(part[1]) * UNITS[part[2]], 0);
}

/** Microseconds of a point in time: a `Date`, or a text with its zone such as "2026-12-24T18:00:00Z". */
export function moment(value, what) {
  const hasZone = typeof value === "string" && /(?:Z|[+-]\d\d:?\d\d)$/.test(value);
  const ms = value instanceof Date ? value.getTime() : hasZone ? Date.parse(value) : NaN;
  if (!Number.isFinite(ms)) {
    throw new CallError(`${what} ${shown(value)} is not a point in time; give a Date, or a text with its zone such as "2026-12-24T18:00:00Z"`);
  }
  return Math.round(ms * 1e3);
}

function shown(value) {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
