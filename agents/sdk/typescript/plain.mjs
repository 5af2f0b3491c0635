// JSON: what a value has that JSON lacks, one fixed text of a value, and its digest.

import { createHash } from "node:crypto";

/** A value that JSON does not have. The text says where it is. */
export class PlainError extends TypeError {
  get name() {
    return "PlainError";
  }
}

// Deeper values are refused by every controller.
const DEPTH_MAX = 200;
const PLACE_CHARS_MAX = 200;

/**
 * The JSON text of a value. Members that are `undefined` are left out, as `JSON.stringify` does; whatever else JSON lacks throws.
 * `what` names the value in the error.
 */
export function encode(value, what) {
  refuse(value, what);
  return whole(JSON.stringify(value));
}

/** The JSON text of a value with sorted members and no space, which is the same for equal values. */
export function canonical(value, what) {
  return JSON.stringify(sorted(JSON.parse(encode(value, what))));
}

/** The first eight bytes of the digest of a text, as hexadecimal digits. */
export function digest(text) {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

/** The text with U+FFFD for each half of a character: `JSON.stringify` escapes these alone, and many readers refuse them. */
function whole(text) {
  return text.includes("\\ud") ? text.replace(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, "$1\ufffd") : text;
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  // Without a prototype, so that a member "__proto__" is a member.
  const object = Object.create(null);
  for (const member of Object.keys(value).sort()) object[member] = sorted(value[member]);
  return object;
}

function refuse(value, what) {
  const problem = find(value, []);
  if (problem === null) return;
  const place = problem.place.reverse().join("");
  throw new PlainError(`${what}${place.length > PLACE_CHARS_MAX ? `${place.slice(0, PLACE_CHARS_MAX)}…` : place} ${problem.text}`);
}

/** What JSON lacks, and the place of it from the inside out. */
function find(value, above, key = "") {
  switch (typeof value) {
    case "string":
    case "boolean":
      return null;
    case "number":
      return Number.isFinite(value) ? null : is(`${value}, which JSON does not have; use null or a text`);
    case "bigint":
      return is("a BigInt, which JSON does not have; use Number(…) or String(…)");
    case "undefined":
      return is("undefined, which JSON does not have; use null or an object");
    case "function":
    case "symbol":
      return is(`a ${typeof value}, which JSON does not have`);
  }
  if (value === null) return null;
  if (above.includes(value)) return is("a value that contains itself, which JSON does not have");
  if (above.length >= DEPTH_MAX) return is(`nested more than ${DEPTH_MAX} levels`);
  const lost = dropped(value);
  if (lost !== null) return is(`${lost[0]}, of which JSON would keep nothing; use ${lost[1]}`);
  above.push(value);
  const problem = typeof value.toJSON === "function" ? find(value.toJSON(key), above, key) : within(value, above);
  above.pop();
  return problem;
}

function within(value, above) {
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const problem = find(value[index], above, String(index));
      if (problem !== null) return at(problem, `[${index}]`);
    }
    return null;
  }
  for (const member of Object.keys(value)) {
    // The optional members of a type are undefined.
    const problem = value[member] === undefined ? null : find(value[member], above, member);
    if (problem !== null) return at(problem, /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(member) ? `.${member}` : `[${JSON.stringify(member)}]`);
  }
  return null;
}

/** What a value is, and what to write instead, if JSON would drop its contents without a word. */
function dropped(value) {
  if (value instanceof Map) return ["a Map", "Object.fromEntries(…)"];
  if (value instanceof Set) return ["a Set", "[...set]"];
  if (value instanceof Promise) return ["a Promise", "await"];
  if (value instanceof Error) return ["an error", "its message"];
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return ["a buffer of bytes", 'Buffer.from(…).toString("base64")'];
  return null;
}

function is(text) {
  return { place: [], text: `is ${text}` };
}

function at(problem, place) {
  problem.place.push(place);
  return problem;
}
