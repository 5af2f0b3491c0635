import type { Core } from "./core.js";

/** What every request takes. */
export interface CallOptions {
  /** Seconds in which the request has to be answered, with all repeats; the client's by default. */
  deadline?: number;
  /** Ends the request early. */
  signal?: AbortSignal;
}

/** One event of a stream. */
export interface Event<Data> {
  /** Where a stream goes on after this event; empty for events that are not sent again. */
  readonly id: string;
  /** What it is: `job`, `line`, `delta`, `gap`, `reset`, or another word. */
  readonly kind: string;
  readonly data: Data;
}

/** Events, for `for await`. It goes on after the last event, at this controller or another one, when it breaks. */
export class Events<Data> implements AsyncIterableIterator<Event<Data>> {
  /** The id of the last event, after which another stream can begin. */
  readonly last: string;
  [Symbol.asyncIterator](): this;
  next(): Promise<IteratorResult<Event<Data>>>;
  return(): Promise<IteratorResult<Event<Data>>>;
  /** Ends the stream. */
  close(): Promise<void>;
}

/** Bytes, piece by piece, for `for await`. */
export class Bytes implements AsyncIterable<Uint8Array> {
  [Symbol.asyncIterator](): AsyncIterator<Uint8Array>;
}

/** What operations are made of. */
export class Calls {
  protected constructor(core: Core);
}
