// The types of `@atlas/agent`. Kept by hand beside the modules; `test/types.ts` uses all of them.

/** What JSON has. */
export type Json = null | boolean | number | string | Json[] | { [member: string]: Json | undefined };

/** A number of seconds, or a text such as "90s", "1h 30m", "2d" or "500ms". */
export type Duration = number | string;

/** A value as it comes back from the record, which is JSON: what a function returns without a value is `null`. */
export type Recorded<T> = [T] extends [void] ? null : T extends { toJSON(): infer J } ? J : T;

/** What the function of a step without arguments gets. */
export interface StepInfo {
  /** The same in each attempt: for services that do a thing once for a key. */
  readonly key: string;
  /** True if an earlier attempt may have run it. */
  readonly again: boolean;
  /** Aborted when nobody waits for the step any more, or its time is over. */
  readonly signal: AbortSignal;
}

export interface Retry {
  /** The most tries, 3 unless stated. */
  attempts?: number;
  /** The first pause, 1 s unless stated. */
  delay?: Duration;
  /** How much longer each pause is than the one before, 2 unless stated. */
  backoff?: number;
  /** The longest pause, 5 min unless stated. */
  maxDelay?: Duration;
  /** Which errors are tried again; all unless stated. */
  on?: (error: unknown) => boolean;
}

export interface StepOptions extends Leave {
  /** What happens if the worker is lost meanwhile: `pure` and `idempotent` steps run again, `once` does not. Default: that of the contract. */
  effects?: "pure" | "idempotent" | "once";
  /** The tries of a step that fails: their number, or more about them. */
  retry?: number | Retry;
  /** The longest time of one try. */
  timeout?: Duration;
}

/** Finds out whether a step with the effect `once` happened: its result, or `DID_NOT_HAPPEN`. Without it, people are asked. */
export type Reconcile<A extends unknown[], T> = (...args: A) => T | typeof DID_NOT_HAPPEN | Promise<T | typeof DID_NOT_HAPPEN>;

export interface Leave {
  /** Once it is aborted, the call is left, and fails with the reason. */
  signal?: AbortSignal;
}

export interface AskOptions extends Leave {
  /** `choose` if there are options, otherwise `text`. */
  kind?: "text" | "confirm" | "choose" | "checkbox";
  options?: Iterable<string>;
  /** The answer is `null`, or `default`, after this time. */
  timeout?: Duration;
  default?: Json;
}

export interface Message {
  readonly id: string;
  readonly from: string;
  readonly at: Date;
  readonly body: any;
}

export interface SpawnOptions extends Leave {
  priority?: number;
  /** A child that is not finished in time is cancelled. 60 s unless stated; in durable agents there is no limit. */
  timeout?: Duration;
}

export interface SpawnResult<T = any> {
  readonly success: boolean;
  /** The output, if it completed. */
  readonly data: T;
  /** The error, if it did not. */
  readonly error: string;
}

export interface ModelOptions extends Leave {
  system?: string;
  maxTokens?: number;
  temperature?: number;
}

export interface ModelAnswer {
  readonly text: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly model: string;
}

/** A text that agents share. */
export interface SharedMemory {
  /** Who shares it: `namespace` unless stated. */
  readonly scope: string;
  /** That of another scope: `agent`, `user` and `conversation` are those of the job; `agent:NAME` is that of another agent. */
  of(scope: string): SharedMemory;
  /** The text; empty if the contract does not enable memory. */
  read(options?: Leave): Promise<string>;
  append(text: string, options?: Leave): Promise<void>;
  /** Replaces the text. */
  write(text: string, options?: Leave): Promise<void>;
}

export interface KnowledgeEntry {
  readonly id: string;
  readonly content: string;
  readonly domain: string;
  readonly tags: readonly string[];
  readonly metadata: Readonly<Record<string, any>>;
  /** ISO 8601 in UTC. */
  readonly created_at: string;
  readonly updated_at: string;
}

/** Entries that agents share. */
export interface Knowledge {
  /** Entries that the agent may read; none if the contract does not enable knowledge. */
  search(query: string, options?: Leave & { domain?: string; tags?: readonly string[]; limit?: number }): Promise<KnowledgeEntry[]>;
  get(id: string, options?: Leave): Promise<KnowledgeEntry | null>;
  store(content: string, options?: Leave & { domain?: string; tags?: readonly string[]; metadata?: Record<string, unknown> }): Promise<KnowledgeEntry>;
  /** `null` if there is no such entry. */
  update(id: string, options: Leave & { content?: string; tags?: readonly string[]; metadata?: Record<string, unknown> }): Promise<KnowledgeEntry | null>;
}

/** A part of a document that fits a question. */
export interface DocumentHit {
  /** The document's name in its base. */
  readonly source: string;
  readonly text: string;
  /** More is better. It compares the hits of one answer. */
  readonly score: number;
  /** The id of the document. */
  readonly document: string;
  /** Which part it is, from 1. */
  readonly chunk: number;
  readonly chunks: number;
  readonly metadata: Readonly<Record<string, any>>;
}

/** What an agent knows of its job, and the calls that it can make. */
export interface Context {
  readonly jobId: string;
  /** 1 for the first. */
  readonly attempt: number;
  readonly traceparent: string | undefined;
  readonly chainName: string;
  readonly stepIndex: number;
  readonly chainData: any;
  readonly depth: number;
  readonly maxDepth: number;
  readonly spawnAllowed: boolean;
  readonly metadata: any;
  readonly secrets: Readonly<Record<string, string>>;
  /** For the agent to fill: texts, numbers and flags for the metadata of the job. */
  executionMetadata: Record<string, string | number | boolean | null>;
  /** Whether the contract says `durable: true`. */
  readonly durable: boolean;
  /** Aborted once the run ends, or once its job waits without this process (`Parked`): the place to free what a run holds. */
  readonly signal: AbortSignal;

  /** Runs a function once: its end is recorded, and later attempts of the job get it without a run. */
  step<T>(name: string, run: (info: StepInfo) => T | Promise<T>, options?: StepOptions & { args?: undefined; reconcile?: Reconcile<[StepInfo], T> }): Promise<Recorded<T>>;
  /** The same for a function with arguments, which are a part of the identity of the step. */
  step<T, A extends unknown[]>(
    name: string,
    run: (...args: A) => T | Promise<T>,
    options: StepOptions & { args: [...A]; reconcile?: Reconcile<A, T> },
  ): Promise<Recorded<T>>;
  /** Waits. A long wait parks the job: it needs no process meanwhile. */
  sleep(time: Duration, options?: Leave): Promise<void>;
  /** Waits until a time: a `Date`, or a text with its zone. */
  until(time: Date | string, options?: Leave): Promise<void>;
  /** Asks people. */
  ask(prompt: string, options?: AskOptions): Promise<any>;
  /** The next message of a channel, or of any; `null` after the timeout. */
  receive(channel?: string, options?: Leave & { timeout?: Duration }): Promise<Message | null>;
  /** True where new code is to run: in jobs that had not come by here before the change of this name. */
  version(name: string): Promise<boolean>;
  /** The time, as the record has it. In a step, that of the clock. */
  now(): Date;
  /** A number from 0 to 1, the same in each attempt. */
  random(): number;
  /** An id, the same in each attempt. */
  uuid(): string;
  /** For services that do a thing once for a key: in a step its key, outside that of the job. */
  readonly idempotencyKey: string;

  /** A job of another agent, and its end. */
  spawn<T = any>(agent: string, input: unknown, options?: SpawnOptions): Promise<SpawnResult<T>>;
  /** Several at the same time; their ends in the same order. */
  spawnAll<T = any>(jobs: Iterable<{ agent: string; input: unknown } & SpawnOptions>, options?: SpawnOptions): Promise<SpawnResult<T>[]>;
  /** Calls a tool of the platform or a skill of the contract. */
  callTool<T = any>(name: string, input?: unknown, options?: Leave): Promise<T>;
  /** What agents share, with `requires: { memory: true }`. */
  readonly memory: SharedMemory;
  /** With `requires: { knowledge: … }`. */
  readonly knowledge: Knowledge;
  /** The parts of a document base that fit a question, the best first, with `requires: { documents: [base] }`. */
  searchDocuments(base: string, query: string, options?: Leave & { topK?: number; source?: string; metadata?: Record<string, unknown> }): Promise<DocumentHit[]>;
  /** Calls the model of the job with a text, or with a list of messages. */
  model(prompt: string | Iterable<{ role: string; content: string }>, options?: ModelOptions): Promise<ModelAnswer>;

  /** Reports progress to those who follow the job. */
  progress(text: string): void;
  /** A piece of an answer that forms; only those who follow the job now get it. A higher `attempt` starts the answer of `step` over. */
  delta(text: string, options?: { step?: number; attempt?: number }): void;
}

/** The base class of an agent. One object serves the jobs of its process, one after the other. */
export abstract class Agent<Input = any, Output = any> {
  /** `agent.yaml`. */
  readonly contract: any;
  /** The context of the job whose code this is. */
  readonly context: Context;
  /** Runs once, before the first job. */
  onStartup(): Promise<void> | void;
  /** Runs once, at the end of the process, for at most five seconds. */
  onShutdown(): Promise<void> | void;
  /** Runs one job. */
  abstract execute(input: Input, ctx: Context): Promise<Output> | Output;
}

/** An agent that is a function: `export default agent(async (input, ctx) => …)`. */
export function agent<Input = any, Output = any>(
  execute: (input: Input, ctx: Context) => Promise<Output> | Output,
): { execute(input: Input, ctx: Context): Promise<Output> | Output };

/** What `reconcile` returns to say that the step did not happen, so that it runs now. */
export const DID_NOT_HAPPEN: unique symbol;

/** A step failed, in this attempt or in an earlier one. */
export class StepError extends Error {
  readonly step: string;
  /** The class of the error that the step threw. */
  readonly type: string;
  /** Its text. */
  readonly text: string;
}
/** No job was made. */
export class SpawnError extends Error {}
/** A tool or a skill was refused, or failed. */
export class ToolError extends Error {}
/** There is no model, or its call failed. */
export class ModelError extends Error {}
/** A question could not be asked. */
export class QuestionError extends Error {}
/** A call that the agent cannot make, or that was made wrongly. */
export class CallError extends Error {}
/** The reason of `ctx.signal` once the job waits without its process. */
export class Parked extends Error {}
