// What can go wrong, as classes. Each has the code of its page in the reference of errors.

import { CODES } from "./codes.js";

/** A request or a job that failed. */
export class AtlasError extends Error {
  constructor(message, { code = "", status = 0, hint = "", retryable, retryAfter, places = [], cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = code;
    this.status = status;
    this.hint = hint;
    this.retryable = retryable ?? (own(CODES, code)?.[2] ?? false);
    this.retryAfter = retryAfter;
    this.places = places;
  }

  toString() {
    const head = this.code ? `${this.code}: ${this.message}` : this.message;
    const places = this.places.slice(0, 8).map((place) => `\n  ${text(place, "pointer") || "/"}: ${text(place, "message")}`);
    return head + places.join("") + (this.hint ? `\n  ${this.hint}` : "");
  }
}

/** The request is malformed or breaks a contract: change it. */
export class Invalid extends AtlasError {}
/** No object has that name. */
export class NotFound extends AtlasError {}
/** It exists with other content, or was changed meanwhile. */
export class Conflict extends AtlasError {}
/** A limit is reached: try again later. */
export class Busy extends AtlasError {}
/** Refused by a policy, or a right is missing. */
export class Denied extends AtlasError {}
/** The request is too large. */
export class TooLarge extends AtlasError {}
/** There is no leader, or the cluster cannot do this now: try again. */
export class Unavailable extends AtlasError {}
/** The time given has passed. */
export class TookTooLong extends AtlasError {}
/** The disk of the cluster is nearly full. */
export class NoSpace extends AtlasError {}
/** It existed and has been dropped. */
export class Gone extends AtlasError {}
/** A fault of Atlas. */
export class Internal extends AtlasError {}
/** No controller answered (E4002), or its certificate is not accepted (E4013). */
export class Unreachable extends Unavailable {}
/** An answer that does not follow the interface, or is larger than the client reads (E4005). */
export class BadAnswer extends AtlasError {}
/** The address, the token or the file of contexts cannot be used. */
export class BadSettings extends AtlasError {}

/** The deadline of a wait has passed. The job goes on: `jobId` can be waited for again. */
export class WaitTimeout extends AtlasError {
  constructor(jobId, seconds) {
    super(`${jobId} has not ended within ${Math.round(seconds * 10) / 10} s; it goes on`, { retryable: true });
    this.jobId = jobId;
  }
}

/** A job failed, and so did its retries. `code` is that of the job's error. */
export class JobFailed extends AtlasError {
  constructor(job) {
    const id = text(job, "id");
    const code = text(job, "error_code");
    const error = text(job, "error");
    const what = code && error.startsWith(`${code}: `) ? error.slice(code.length + 2) : error;
    super(`${id} failed: ${what || "it says no reason"}`, { code });
    this.job = job;
    this.jobId = id;
    this.failureKind = text(job, "failure_kind");
  }
}

/** A job was cancelled. */
export class JobCancelled extends AtlasError {
  constructor(job) {
    const id = text(job, "id");
    super(`${id} was cancelled`);
    this.job = job;
    this.jobId = id;
  }
}

const KINDS = {
  invalid: Invalid,
  not_found: NotFound,
  conflict: Conflict,
  busy: Busy,
  denied: Denied,
  too_large: TooLarge,
  unavailable: Unavailable,
  timeout: TookTooLong,
  no_space: NoSpace,
  gone: Gone,
  internal: Internal,
};

// For codes that this client does not know, and answers without one.
const BY_STATUS = new Map([
  [401, "denied"],
  [403, "denied"],
  [404, "not_found"],
  [408, "timeout"],
  [409, "conflict"],
  [410, "gone"],
  [413, "too_large"],
  [429, "busy"],
  [502, "unavailable"],
  [503, "unavailable"],
  [504, "timeout"],
  [507, "no_space"],
]);

// Statuses whose cause can pass if the code does not say.
const PASSING = [429, 502, 503, 504];

/** The error of an answer that is no success. The body may be anything. */
export function refusal(status, header, body) {
  const code = text(body, "code") || header("atlas-error-code") || "";
  const texts = ["detail", "message", "error", "title"].map((name) => text(body, name));
  const message = texts.find((one) => one !== "") ?? `the server answered ${status}`;
  const [, known, passes] = own(CODES, code) ?? ["", BY_STATUS.get(status), PASSING.includes(status)];
  const kind = known ?? (status >= 400 && status < 500 ? "invalid" : "internal");
  const places = Array.isArray(body?.errors) ? body.errors.filter((place) => isObject(place)) : [];
  return new KINDS[kind](message.slice(0, 4096), {
    code: code.slice(0, 16),
    status,
    hint: text(body, "hint").slice(0, 4096),
    retryable: passes,
    retryAfter: seconds(body?.retry_after_s) ?? seconds(header("retry-after")),
    places,
  });
}

/** An answer that cannot be read. */
export function bad(why, cause) {
  return new BadAnswer(`the server's answer could not be read: ${why}`, { code: "E4005", retryable: false, cause });
}

/** A controller that did not answer. */
export function unreachable(why, cause) {
  return new Unreachable(why, { code: "E4002", retryable: true, cause });
}

export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A member that is a text; empty if it is none. */
export function text(value, name) {
  const member = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  return typeof member === "string" ? member : "";
}

/** A number of seconds as servers write it; undefined if it is none. */
export function seconds(value) {
  const number = typeof value === "number" ? value : typeof value === "string" && value.trim() !== "" ? Number(value) : NaN;
  return number >= 0 && number < 1e9 ? number : undefined;
}

function own(object, name) {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}
