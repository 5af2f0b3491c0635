import type { CallOptions, Events } from "./calls.js";
import type { Operations } from "./operations.js";
import type * as types from "./types.js";

export { Bytes, Events } from "./calls.js";
export type { CallOptions, Event } from "./calls.js";
export type { Operations } from "./operations.js";
export type * as types from "./types.js";

/** Which cluster, and how patiently. What is left out comes, in Node, from `ATLAS_SERVER`, `ATLAS_TOKEN`, `ATLAS_CONTEXT`, `ATLAS_NAMESPACE`,
 * `ATLAS_CA_FILE` and the contexts of atlasctl; in browsers, the cluster is that of the page. */
export interface ClientOptions {
  /** Addresses of controllers: a list, or a text with commas between them. */
  servers?: string | readonly string[];
  token?: string;
  /** The name of a context of atlasctl; Node only. */
  context?: string;
  namespace?: string;
  /** The file with the certificates to trust alone; Node only. */
  caFile?: string;
  /** Seconds in which a request has to be answered, with all repeats; 60 by default. */
  deadline?: number;
  policy?: Partial<RetryPolicy>;
  /** Most bytes of an answer that are read into memory; 64 MiB by default. */
  answerMax?: number;
}

/** How often a request is repeated: as long as its deadline permits, and no more often than `rounds`. */
export interface RetryPolicy {
  /** Rounds over all controllers; 30 by default. */
  rounds: number;
  /** Seconds before the first repeat, 0.1 by default; each further pause is twice as long. Half of each is by chance. */
  pause: number;
  /** The longest pause in seconds; 5 by default. */
  pauseMax: number;
}

/** Options of a submission. */
export interface SubmitOptions extends CallOptions {
  /** The idempotency key. It is made once and kept over all repeats; give your own to make one job also over restarts of your program. */
  key?: string;
  /** A requirement such as `^1.2.0`. */
  version?: string;
  /** Higher runs first. */
  priority?: number;
  labels?: Record<string, string>;
  /** Execution timeout of the job, in seconds. */
  timeout?: number;
  /** Earliest start, Unix seconds. */
  at?: number;
  /** Most that its model calls may cost; as text it is exact. */
  budgetUsd?: number | string;
  /** What happens to its questions: `fail`, `wait`, or `answer:` and a text. */
  questions?: string;
  unsatisfiable?: "wait" | "fail";
  title?: string;
  /** The conversation that it continues or begins. */
  conversation?: string;
  /** `false`: an input that breaks the contract makes a job that fails. */
  validate?: boolean;
  namespace?: string;
}

/** Options of a wait. */
export interface WaitOptions {
  /** Seconds to wait; without them, until the job has ended. */
  deadline?: number;
  /** Gets each question and returns its answer; undefined leaves it to others. */
  onQuestion?: (question: types.Question) => unknown;
  namespace?: string;
  signal?: AbortSignal;
}

/** What an agent said in a conversation. */
export interface Reply<Output = unknown> {
  /** Its answer as text. */
  text: string;
  /** The whole output of the job. */
  output: Output;
  jobId: string;
}

type InNamespace = CallOptions & { namespace?: string };

/** A client of one cluster. */
export class Client {
  constructor(options?: ClientOptions);
  /** Every operation of the interface. */
  readonly api: Operations;
  /** Submits a job and returns its id. */
  submit(agent: string, input?: unknown, options?: SubmitOptions): Promise<string>;
  /** Waits for the end of a job and of its retries and returns the output. Throws `JobFailed`, `JobCancelled` or, after `deadline` seconds,
   * `WaitTimeout`. */
  wait<Output = unknown>(jobId: string, options?: WaitOptions): Promise<Output>;
  /** Like `wait`, but returns the job, whether it failed or not: the last of its retries. */
  waitJob(jobId: string, options?: WaitOptions): Promise<types.Job>;
  /** Submits a job, waits for its end and returns the output. `deadline` is that of both. */
  run<Output = unknown>(agent: string, input?: unknown, options?: SubmitOptions & WaitOptions): Promise<Output>;
  /** The changes of a job until it has ended, each once: past ones first. `after` is the id of an event to go on after; `deltas` adds pieces
   * of models' answers. */
  stream(
    jobId: string,
    options?: { after?: string; deltas?: boolean; namespace?: string; signal?: AbortSignal },
  ): Events<types.Change>;
  /** A job with all its members. */
  job(jobId: string, options?: InNamespace): Promise<types.Job>;
  /** Cancels a job and the jobs that it spawned; false if there was nothing to cancel. */
  cancel(jobId: string, options?: InNamespace): Promise<boolean>;
  /** Answers a question of a job. The first answer stands. */
  answer(questionId: string, answer: unknown, options?: InNamespace): Promise<types.Question>;
  /** Says something to an agent in a conversation, which it continues or begins, and waits for the answer. While an earlier message is
   * answered, this one waits for its turn. `input` has other members of the input. */
  send<Output = unknown>(
    agent: string,
    message: string,
    options: Omit<SubmitOptions, "conversation"> & { conversation: string; input?: Record<string, unknown> },
  ): Promise<Reply<Output>>;
  /** A conversation with its messages, the oldest first. */
  conversation(conversationId: string, options?: InNamespace): Promise<types.Conversation>;
  /** Registers an agent from its package: the bytes of a tar archive compressed with gzip or, in Node, the path of a file with them. */
  upload(
    bytes: Uint8Array | string,
    options?: InNamespace & { replace?: boolean },
  ): Promise<types.Registered>;
  /** Writes a backup of the cluster to a file, which is there once it is complete; returns its size. Node only. */
  downloadBackup(path: string, options?: CallOptions): Promise<number>;
  /** Closes the connections. */
  close(): void;
}

/** A request or a job that failed. */
export class AtlasError extends Error {
  /** `E` and four digits; empty if the server named none. */
  readonly code: string;
  /** The HTTP status; 0 if there was no answer. */
  readonly status: number;
  /** What to try. */
  readonly hint: string;
  /** Whether the cause can pass, so that the same request may succeed later. */
  readonly retryable: boolean;
  /** Seconds until a repeat may succeed, if the server said so. */
  readonly retryAfter: number | undefined;
  /** What is wrong in an input. */
  readonly places: ReadonlyArray<Partial<types.Violation>>;
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
/** The deadline of a wait has passed. The job goes on. */
export class WaitTimeout extends AtlasError {
  readonly jobId: string;
}
/** A job failed, and so did its retries. */
export class JobFailed extends AtlasError {
  readonly job: types.Job;
  readonly jobId: string;
  readonly failureKind: string;
}
/** A job was cancelled. */
export class JobCancelled extends AtlasError {
  readonly job: types.Job;
  readonly jobId: string;
}
