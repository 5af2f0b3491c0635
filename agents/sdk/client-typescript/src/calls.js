// What the generated operations are made of.

import { Bytes, Events } from "./core.js";
import { seconds } from "./errors.js";

/** Seconds in which one controller has to begin its answer. */
const PATIENCE = 30;
/** Parameters that make an answer wait. */
const WAITS = ["wait", "timeout", "queue_wait"];

export class Calls {
  constructor(core) {
    this._core = core;
  }

  _json(...parts) {
    return run(() => this._core.json(callOf(this._core, ...parts)));
  }

  _text(...parts) {
    return run(() => {
      const call = callOf(this._core, ...parts);
      return this._core.whole({ ...call, headers: { accept: "*/*, application/problem+json", ...call.headers } });
    });
  }

  _bytes(...parts) {
    return new Bytes(this._core, callOf(this._core, ...parts));
  }

  /** A log begins with its first line, so it repeats nothing as long as no line has come. */
  _stream(...parts) {
    const call = callOf(this._core, ...parts);
    return new Events(this._core, call, { repeats: call.path.split("?")[0].endsWith("/logs") });
  }
}

/** What is wrong with arguments ends the promise too. */
async function run(work) {
  return work();
}

/** A request of an operation. */
export function callOf(core, method, path, names, query, headers, body, { deadline = core.deadline, signal } = {}) {
  const waits = WAITS.reduce((sum, name) => sum + (seconds(query[name]) ?? 0), 0);
  if ("namespace" in query) query.namespace ??= core.namespace;
  const sent = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && value !== null) sent[name.toLowerCase()] = headerOf(name, value);
  }
  if (body instanceof Uint8Array) sent["content-type"] = "application/gzip";
  return {
    method,
    path: pathOf(path, names) + queryOf(query),
    headers: sent,
    body: body === undefined || body instanceof Uint8Array ? body : JSON.stringify(body),
    deadline: deadline === undefined || deadline === null ? undefined : deadline + waits,
    patience: PATIENCE + waits,
    signal,
  };
}

/** A path with names in its braces, each of which stays one part of it. */
export function pathOf(template, names) {
  return template.replace(/\{(\w+)\}/g, (_, name) => {
    const value = String(names[name] ?? "");
    if (value === "" || value === "." || value === "..") throw new TypeError(`${name} cannot be "${value}"`);
    return encodeURIComponent(value);
  });
}

function queryOf(values) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== undefined && item !== null) query.append(name, String(item));
    }
  }
  const text = query.toString();
  return text && `?${text}`;
}

function headerOf(name, value) {
  const text = String(value);
  if (/[^\t\x20-\x7e\x80-\xff]/.test(text)) throw new TypeError(`the header ${name} has characters that headers cannot have`);
  return text;
}
