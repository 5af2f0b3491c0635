// The calls of one run of a durable agent, and what the record has of them.
//
// A call's identity is its kind, its name, a digest of its arguments, and a number among equal ones. The worker knows the record and
// decides what a call gets. It sends ahead what was recorded one after the other (`past`), so that the replay of a sequence needs no
// round trips. The first call that is not the next of these ends that: it and all later ones are asked.

import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";

import { CallError, Failed, ModelError, Parked, QuestionError, StepError, textOf, typeOf } from "./errors.mjs";
import { canonical, digest, encode } from "./plain.mjs";

// The worker cuts it for people, after it has removed secrets.
const GIVEN_CHARS_MAX = 1000;
const NAME_CHARS_MAX = 128;
const TEXT_CHARS_MAX = 10_000; // of an error
// Calls that the worker has at a time; it refuses more than 1024. Others wait here, in their order.
const SENT_MAX = 1000;
// Turns of the loop between two ends, if the program never waits.
const TURNS_MAX = 200;

/** What a reconciling function returns to say that the step did not happen. */
export const DID_NOT_HAPPEN = Symbol.for("atlas.agent.did_not_happen");

/** The step whose function runs here: its record, name, key and signal. */
export const inStep = new AsyncLocalStorage();

/** The end of a call of a run that has ended or parked: none. What waits for it does not go on, and is freed. */
export function never() {
  return new Promise(() => {});
}

export class Record {
  #number;
  #channel;
  #host;
  #past;
  #claimed = 0;
  #equal = new Map(); // how many calls were equal
  #open = new Map(); // calls by their number
  #last = 0;
  #unsent = [];
  #sent = 0; // open calls that the worker has
  #isFlushing = false;
  #arrived = [];
  #isDelivering = false;
  #turns = 0;
  #running = 0; // functions of steps
  #nowUs;
  #seed;
  #valueBytesMax;
  #draws = 0;
  #isOver = false;

  /**
   * `host.place()` says which line of the agent calls, `host.isQuiet()` whether the process does nothing else than to wait, and
   * `host.fail(error)` ends the run.
   */
  constructor(frame, channel, host) {
    this.#number = frame.number;
    this.#channel = channel;
    this.#host = host;
    this.#past = frame.past ?? [];
    this.#nowUs = frame.began_us ?? 0;
    this.#seed = String(frame.seed ?? frame.context?.job_id ?? "");
    this.#valueBytesMax = frame.value_bytes_max ?? 8 << 20;
  }

  /** The run has ended or parked: nothing of it goes on. */
  end() {
    this.#isOver = true;
    for (const call of this.#open.values()) call.stopper?.abort(new Parked());
    this.#open.clear();
    this.#unsent = [];
    this.#arrived = [];
    this.#past = [];
  }

  /** How many of the calls that the job was sent with the program has made. */
  get claimed() {
    return this.#claimed;
  }

  /** When the latest record was made that the run knows of, in milliseconds. In a step, what the clock says. */
  get nowMs() {
    return inStep.getStore() === undefined ? Math.floor(this.#nowUs / 1e3) : Date.now();
  }

  /** Bytes that follow from the job, and from how many were drawn before. */
  draw() {
    const step = inStep.getStore();
    const text = step === undefined ? `${this.#seed}/${(this.#draws += 1)}` : `${step.key}/${(step.draws += 1)}`;
    return createHash("sha256").update(text).digest();
  }

  /**
   * Makes a call. `given` are its arguments, which are a part of its identity; `members` are what the worker needs of it. A call with a
   * function `run` is a step of the program: the worker says whether to run it.
   */
  async call(kind, name, given, members, { run, reconcile, signal, shown } = {}) {
    if (this.#isOver) return never();
    const step = inStep.getStore();
    if (step?.record === this) {
      throw new CallError(`${kind} "${name}" is called inside of step "${step.name}"; call it outside of that step`);
    }
    const isName = typeof name === "string" && name.length <= NAME_CHARS_MAX && (name !== "" || kind !== "step");
    if (!isName) throw new CallError(`the name of a ${kind} is a text of 1 to ${NAME_CHARS_MAX} characters, and not ${JSON.stringify(name)}`);
    signal?.throwIfAborted();
    const text = canonical(given, `the arguments of ${kind} "${name}"`);
    const base = `${kind}:${name.toWellFormed()}:${digest(text)}`;
    const nth = (this.#equal.get(base) ?? 0) + 1;
    this.#equal.set(base, nth);
    const id = `${base}:${nth}`;
    const recorded = this.#recorded(id);
    if (recorded !== undefined) {
      if (recorded.error === undefined) return recorded.value;
      throw failure(kind, name, recorded.error);
    }
    this.#last += 1;
    const call = { kind, name, run, reconcile, isSent: false, isBegun: false, stopper: run && new AbortController() };
    const frame = { call: this.#last, kind, name: name.toWellFormed(), id, digest: digest(text), given: short(shown ?? text), at: this.#host.place() };
    return new Promise((resolve, reject) => {
      Object.assign(call, { resolve, reject });
      this.#open.set(frame.call, call);
      this.#unsent.push({ ...frame, ...members });
      this.#flushSoon();
      if (signal !== undefined) {
        const left = () => this.#forget(frame.call, signal.reason);
        signal.addEventListener("abort", left, { once: true });
        call.closed = () => signal.removeEventListener("abort", left);
      }
    });
  }

  /** The end of a call that the job was sent with. */
  #recorded(id) {
    const next = this.#past[this.#claimed];
    if (next?.[0] !== id) {
      this.#past = [];
      return undefined;
    }
    this.#past[this.#claimed] = undefined; // its memory is not needed again
    this.#claimed += 1;
    this.#reached(next[2]);
    return next[1];
  }

  #flushSoon() {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    setImmediate(() => this.#flush());
  }

  /** Sends what was called since the last turn of the loop. Whatever could go on has by now, so all tasks of the program are known to wait. */
  #flush() {
    this.#isFlushing = false;
    const unsent = this.#unsent.filter((frame) => this.#open.has(frame.call));
    this.#unsent = unsent.splice(SENT_MAX - this.#sent);
    const alone = this.#open.size === 1 && this.#running === 0 && this.#host.isQuiet();
    for (const frame of unsent) {
      this.#open.get(frame.call).isSent = true;
      this.#sent += 1;
      this.#channel.send({ type: "call", number: this.#number, claimed: this.#claimed, alone, ...frame });
    }
  }

  /** The program does not wait for a call any more. */
  #forget(number, reason) {
    const call = this.#close(number);
    if (call === undefined) return;
    if (call.isSent) this.#sendForget(number, call.run !== undefined && !call.isBegun);
    call.stopper?.abort(reason);
    call.reject(reason);
  }

  /** `over`: it is a step, and `made` will not follow. */
  #sendForget(number, over) {
    this.#channel.send({ type: "forget", number: this.#number, call: number, ...(over ? { over } : {}) });
  }

  #close(number) {
    const call = this.#open.get(number);
    this.#open.delete(number);
    call?.closed?.();
    if (call?.isSent) this.#sent -= 1;
    if (this.#unsent.length > 0) this.#flushSoon();
    return call;
  }

  /** What the worker says to a call. Ends reach the program one after the other, so that it does first what follows the first of them. */
  answered(frame) {
    if (this.#isOver) return;
    if (frame.make === true) {
      this.#make(frame);
      return;
    }
    this.#arrived.push(frame);
    if (!this.#isDelivering) this.#deliver();
  }

  #deliver() {
    const frame = this.#arrived.shift();
    this.#isDelivering = frame !== undefined;
    if (frame === undefined) return;
    this.#reached(frame.at_us);
    const call = this.#close(frame.call);
    if (frame.error !== undefined) call?.reject(failure(call.kind, call.name, frame.error));
    else call?.resolve(frame.value);
    this.#turns = 0;
    setImmediate(() => this.#settle());
  }

  /** Goes on once the program waits again. */
  #settle() {
    this.#turns += 1;
    const isBusy = this.#arrived.length > 0 && this.#turns < TURNS_MAX && process.getActiveResourcesInfo().includes("Immediate");
    if (isBusy) setImmediate(() => this.#settle());
    else this.#deliver();
  }

  #reached(us) {
    if (us > this.#nowUs) this.#nowUs = us;
  }

  /** Runs the function of a step, or the one that finds out whether the step happened. */
  async #make(frame) {
    const call = this.#open.get(frame.call);
    if (call?.run === undefined) {
      this.#sendForget(frame.call, true); // nobody runs it any more
      return;
    }
    call.isBegun = true;
    const info = { key: frame.key, again: frame.again === true, signal: call.stopper.signal };
    const looks = frame.doubt === true && call.reconcile !== undefined;
    const made = { type: "made", number: this.#number, call: frame.call };
    let text;
    this.#running += 1;
    try {
      const store = { record: this, name: call.name, key: frame.key, draws: 0 };
      const found = await inStep.run(store, () => (looks ? call.reconcile : call.run)(info));
      const isUndone = looks && found === DID_NOT_HAPPEN;
      if (isUndone) call.isBegun = false;
      const end = isUndone ? '"reconciled":"did_not"' : `"value":${this.#value(call, found ?? null)}`;
      text = `${JSON.stringify(made).slice(0, -1)},${end}}`;
    } catch (error) {
      if (looks) this.#undecided(frame.call, call, error);
      else text = JSON.stringify({ ...made, error: this.#error(call, error) });
    }
    this.#running -= 1;
    if (text !== undefined && !this.#isOver) this.#channel.sendText(text);
  }

  /** The JSON text of what a step returned. A text that is too large would not reach the worker. */
  #value(call, found) {
    const text = encode(found, `the result of step "${call.name}"`);
    const [bytes, most] = [Buffer.byteLength(text), this.#valueBytesMax];
    if (bytes <= most) return text;
    throw new CallError(`the result of the step '${call.name}' has ${bytes} bytes, more than ${most}; keep it elsewhere, and return where it is`);
  }

  /** It is not known whether a step happened, so the run cannot go on. Nothing is recorded; a later attempt looks again. */
  #undecided(number, call, error) {
    if (this.#isOver) return;
    this.#sendForget(number, true);
    if (this.#close(number) === undefined) return; // the program had left it
    const text = `whether step "${call.name}" happened could not be found out: ${typeOf(error)}: ${textOf(error)}`;
    this.#host.fail(new CallError(text, { cause: error }));
  }

  /** What is recorded of an error; the job's log has all of it. */
  #error(call, error) {
    if (!this.#isOver) console.error(error);
    const end = { type: typeOf(error), text: shortened(textOf(error), TEXT_CHARS_MAX) };
    // Decided now, so that a replay decides the same.
    return call.run.isFinal(error) ? { ...end, retry: false } : end;
  }
}

/** The error that a program gets, the same in each attempt. */
function failure(kind, name, { type, text, retry }) {
  if (kind === "step") return Object.defineProperty(new StepError(name, type, text), "retry", { value: retry !== false, enumerable: false });
  const Class = { ask: QuestionError, model: ModelError, spawn: Failed, tool: Failed }[kind] ?? CallError;
  return new Class(text || type);
}

function short(text) {
  return shortened(text, GIVEN_CHARS_MAX).toWellFormed();
}

function shortened(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…`.toWellFormed() : text;
}
