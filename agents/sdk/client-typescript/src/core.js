// Requests: to which controller, how often, and for how long.

import { AtlasError, BadAnswer, Unavailable, Unreachable, bad, refusal, unreachable } from "./errors.js";
import { Parser } from "./sse.js";

/** Seconds without a byte of an event stream: controllers say every 15 s that they are there. */
const SILENCE = 60;
/** Most bytes of the text of a refusal. */
const REFUSAL_MAX = 1 << 20;
/** Longest pause that a controller may ask for, in seconds. */
const AFTER_MAX = 3600;
/** Longest time of a timer, in milliseconds. */
const TIMER_MAX = 2 ** 31 - 1;

export const JSON_TYPES = "application/problem+json, application/json";

/** How often a request is repeated: as long as its deadline permits, and no more often than `rounds`. */
export const POLICY = { rounds: 30, pause: 0.1, pauseMax: 5 };

export const now = () => performance.now() / 1000;

/** A client of one cluster, by one or more of its controllers. */
export class Core {
  constructor({ servers, token, namespace, transport, policy, deadline, answerMax }) {
    this.servers = servers;
    /** A function that returns the token, or a promise of it. */
    this.token = token;
    this.namespace = namespace;
    this.transport = transport;
    this.policy = { ...POLICY, ...policy };
    this.deadline = deadline;
    this.answerMax = answerMax;
    /** The place of the controller that answered last. */
    this.current = 0;
  }

  /** Sends a request and reads the JSON of its answer. */
  async json(call) {
    return readJson(await this.whole({ ...call, headers: { accept: JSON_TYPES, ...call.headers } }));
  }

  /** Sends a request and reads all of its answer, as text. Repeats it if the answer breaks off. */
  async whole(given) {
    const call = prepared(given);
    for (let round = 0; round < this.policy.rounds; round += 1) {
      const answer = await this.send(call);
      try {
        return await text(answer, this.answerMax, Math.min(call.until, now() + call.patience));
      } catch (error) {
        if (!(error instanceof Unreachable) || now() >= call.until) throw error;
        this.current += 1;
      }
    }
    throw unreachable("every answer broke off");
  }

  /** Sends a request to the controller that answered last, and to the others if it cannot answer. A change has a key, so that it
   * happens once even if several controllers receive it. */
  async send(given) {
    const call = prepared(given);
    for (let round = 0; ; round += 1) {
      const { answer, failed } = await this.round(call);
      if (answer) return answer;
      const pause = Math.max(pauseAfter(this.policy, round), Math.min(failed.retryAfter ?? 0, AFTER_MAX));
      if (!failed.retryable || now() + pause >= call.until || round + 1 >= this.policy.rounds) throw failed;
      await sleep(pause, call.signal);
    }
  }

  /** Asks each controller once. What is not an answer says most about why there is none. */
  async round(call) {
    const first = this.current % this.servers.length;
    let failed;
    for (let step = 0; step < this.servers.length; step += 1) {
      const place = (first + step) % this.servers.length;
      try {
        const answer = await this.once(this.servers[place], call);
        if (answer.status >= 200 && answer.status < 300) {
          this.current = place;
          const warning = answer.header("warning");
          if (warning) console.warn(`Atlas: ${warning.slice(0, 1000)}`);
          return { answer };
        }
        const error = await refused(answer);
        failed = telling(failed, error);
        // Of a limit, every controller says the same.
        if (!(error instanceof Unavailable)) {
          this.current = place;
          return { failed: error };
        }
      } catch (error) {
        if (!(error instanceof Unreachable)) throw error;
        failed = telling(failed, error);
      }
    }
    // The next round begins elsewhere: this controller may answer that it cannot, for as long as it is alone.
    this.current = first + 1;
    return { failed };
  }

  async once(server, call) {
    const headers = { ...call.headers };
    const token = await this.token?.();
    if (token) headers.authorization = `Bearer ${token}`;
    if (call.body !== undefined) headers["content-type"] ??= "application/json";
    const abort = new AbortController();
    const given = () => abort.abort();
    call.signal?.throwIfAborted();
    call.signal?.addEventListener("abort", given, { once: true });
    const until = Math.min(call.until, now() + call.patience);
    let answer;
    try {
      const request = { url: server + call.path, method: call.method, headers, body: call.body, signal: abort.signal };
      answer = await within(this.transport(request), until, abort);
    } catch (error) {
      call.signal?.throwIfAborted();
      throw error instanceof AtlasError ? error : unreachable(`could not reach Atlas at ${server}: ${error?.message}`, error);
    } finally {
      if (!answer) call.signal?.removeEventListener("abort", given);
    }
    answer.abort = abort;
    answer.signal = call.signal;
    answer.end = () => call.signal?.removeEventListener("abort", given);
    return answer;
  }
}

/** A call with what all its repeats share: its key and the time until which it has to be answered. */
function prepared(call) {
  if (call.until !== undefined) return call;
  const headers = { ...call.headers };
  if (call.method !== "GET") headers["idempotency-key"] ??= newKey();
  return { ...call, headers, until: call.deadline === undefined ? Infinity : now() + call.deadline };
}

async function refused(answer) {
  let body = "";
  try {
    body = JSON.parse(await text(answer, REFUSAL_MAX, now() + 10));
  } catch {
    // The status and the headers say enough.
  }
  return refusal(answer.status, answer.header, body);
}

/** The pieces of an answer; each has to come until a time, which `limit` returns. */
export async function* pieces(answer, limit) {
  const body = answer.body[Symbol.asyncIterator]();
  let isOver = false;
  try {
    for (;;) {
      const { done, value } = await within(body.next(), limit(), answer.abort);
      isOver = done;
      if (done) return;
      yield value;
    }
  } catch (error) {
    isOver = true;
    answer.signal?.throwIfAborted();
    throw error instanceof AtlasError ? error : unreachable(`the answer broke off: ${error?.message}`, error);
  } finally {
    answer.end();
    if (!isOver) answer.abort.abort();
  }
}

async function text(answer, most, until) {
  const found = [];
  let size = 0;
  for await (const piece of pieces(answer, () => until)) {
    size += piece.byteLength;
    if (size > most) throw bad(`it is longer than ${most} bytes`);
    found.push(piece);
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const piece of found) {
    whole.set(piece, at);
    at += piece.byteLength;
  }
  return new TextDecoder().decode(whole);
}

/** Waits for a promise until a time. */
async function within(promise, until, abort) {
  if (until === Infinity) return promise;
  let timer;
  const late = new Promise((_, reject) => {
    const left = Math.min(Math.max((until - now()) * 1000, 0), TIMER_MAX);
    timer = setTimeout(() => reject(unreachable("the server did not answer in time")), left);
  });
  try {
    return await Promise.race([promise, late]);
  } catch (error) {
    abort.abort();
    // The other one ends with an error as well, which nobody waits for.
    promise.catch?.(() => {});
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** The bytes of an answer, piece by piece, for `for await`. */
export class Bytes {
  constructor(core, call) {
    this.core = core;
    this.call = call;
  }

  async *[Symbol.asyncIterator]() {
    const headers = { accept: "*/*, application/problem+json", ...this.call.headers };
    const answer = await this.core.send({ ...this.call, headers });
    yield* pieces(answer, () => now() + SILENCE);
  }
}

/** Events, for `for await`. It goes on after the last event, at this controller or another one, when it breaks. */
export class Events {
  constructor(core, call, { last = "", repeats = false, isOver, ends } = {}) {
    this.core = core;
    // `close` ends what is under way, as the signal of the caller does.
    this.abort = new AbortController();
    const { signal } = call;
    const given = () => this.abort.abort(signal.reason);
    signal?.addEventListener("abort", given, { once: true });
    this.unlink = () => signal?.removeEventListener("abort", given);
    if (signal?.aborted) this.abort.abort(signal.reason);
    this.call = { ...call, signal: this.abort.signal };
    /** The id of the last event, after which another stream can begin. */
    this.last = last;
    // Whether a stream that begins again without a last event repeats nothing.
    this.repeats = repeats;
    // Of a stream that has an end of its own: whether an event is the last one, and whether all is over.
    this.ends = ends;
    this.isOver = isOver;
    this.closed = false;
    this.run = this.follow();
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  next() {
    return this.run.next();
  }

  return() {
    return this.close().then(() => ({ done: true, value: undefined }));
  }

  /** Ends the stream. */
  async close() {
    this.closed = true;
    this.abort.abort();
    await this.run.return();
    this.unlink();
  }

  async *follow() {
    try {
      yield* this.resumed();
    } finally {
      this.unlink();
    }
  }

  async *resumed() {
    let breaks = 0;
    let passed = 0;
    let before = -1;
    let hasEnded = false;
    while (!this.closed) {
      let isOpen = false;
      try {
        const answer = await this.open();
        isOpen = true;
        const parser = new Parser();
        for await (const piece of pieces(answer, () => now() + SILENCE)) {
          for (const { id, kind, data } of parser.push(piece)) {
            const event = { id, kind, data: readJson(data) };
            passed += 1;
            if (id) [this.last, breaks] = [id, 0];
            hasEnded ||= this.ends?.(event) ?? false;
            yield event;
          }
        }
        if (!this.isOver || hasEnded || (before === passed && (await this.isOver()))) return;
        before = passed;
      } catch (error) {
        if (this.closed) return;
        const blind = this.last === "" && passed > 0 && !this.repeats;
        // What cannot be opened was tried for as long as a request may be.
        if (!isOpen || !(error instanceof Unreachable) || blind) throw error;
        if (breaks + 1 >= this.core.policy.rounds) throw error;
      }
      breaks += 1;
      if (breaks >= this.core.policy.rounds) throw bad("a stream that has not ended ends at once, again and again");
      this.core.current += 1;
      await sleep(pauseAfter(this.core.policy, breaks - 1), this.call.signal).catch((error) => {
        if (!this.closed) throw error;
      });
    }
  }

  async open() {
    const headers = { ...this.call.headers, accept: "text/event-stream, application/problem+json" };
    if (this.last) headers["last-event-id"] = this.last;
    const answer = await this.core.send({ ...this.call, headers });
    const kind = answer.header("content-type") ?? "";
    if (!kind.startsWith("text/event-stream")) {
      answer.end();
      answer.abort.abort();
      throw bad(`it is no stream of events, but "${kind.slice(0, 100)}"`);
    }
    return answer;
  }
}

function telling(one, other) {
  const rank = (error) => ({ E4002: 0, E4013: 1, E4001: 2 })[error.code] ?? 3;
  return one === undefined || rank(other) > rank(one) ? other : one;
}

/** The pause after a round, from 0 on; half of it is by chance. */
function pauseAfter({ pause, pauseMax }, round) {
  return Math.min(pause * 2 ** Math.min(round, 30), pauseMax) * (0.5 + Math.random() / 2);
}

export async function sleep(seconds, signal) {
  signal?.throwIfAborted();
  await new Promise((resolve, reject) => {
    const given = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", given);
      resolve();
    }, Math.min(seconds * 1000, TIMER_MAX));
    signal?.addEventListener("abort", given, { once: true });
  });
}

/** JSON from a server, which may be anything. */
export function readJson(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw bad(String(error?.message ?? error).slice(0, 200), error);
  }
}

/** A key by which a repeat is known. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `js-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

export { BadAnswer };
