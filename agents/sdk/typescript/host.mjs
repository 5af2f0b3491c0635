// The process of one Node slot: `node host.mjs READ_FD WRITE_FD`.
//
// Frames go over two descriptors of their own: four bytes of length, most significant first, then JSON. What the agent prints goes to
// stdout and stderr, which the worker reads as log lines, so that no print can break the framing.
//
//   worker: start {contract, directory}   run {number, input, context, past?, began_us?, seed?, value_bytes_max?}   spawned {call, data | error | refused}
//           called {call, value | error | make | stop, at_us}   leave {number}   shutdown
//   host:   ready   failed {stage, error}   result {number, output, claimed?, execution_metadata?}   error {number, error, execution_metadata?}
//           log {level, text}   progress {text}   delta {number, step, try, text}   left {number}   stopped
//           spawn, tool, model, leave {number, call, …}   and of durable agents call, made, forget {number, call, …}

import { AsyncLocalStorage } from "node:async_hooks";
import { realpathSync } from "node:fs";

import { Calls } from "./calls.mjs";
import { Channel } from "./channel.mjs";
import { Context } from "./context.mjs";
import { Parked, described, isBare, textOf, typeOf } from "./errors.mjs";
import { ImportError, NoImplementation, lineIn, load } from "./loader.mjs";
import * as log from "./log.mjs";
import { encode } from "./plain.mjs";
import { Record } from "./record.mjs";
import * as resolve from "./resolve.mjs";

// The two pipes of the host, and those of its prints.
const OWN_PIPES = 4;

/** One agent, one job at a time. */
class Host {
  #channel;
  #agent;
  #contract;
  #directory;
  #run; // the current one: its number, context, and record or calls
  #latest; // the latest context, for code that runs outside of a job
  #calls = 0;
  #isEnding = false;
  #contexts = new AsyncLocalStorage();

  constructor(channel) {
    this.#channel = channel;
  }

  serve() {
    const on = {
      start: (frame) => this.#start(frame),
      run: (frame) => this.#execute(frame),
      spawned: (frame) => this.#run?.calls?.answered(frame),
      called: (frame) => this.#called(frame),
      leave: (frame) => this.#leave(frame),
      shutdown: () => this.#shutdown(),
    };
    this.#channel.listen((frame) => on[frame.type]?.(frame), () => this.#exit(0));
    process.on("uncaughtException", (error) => this.#astray(error));
  }

  async #start({ contract, directory }) {
    this.#directory = realpathSync(directory);
    this.#contract = contract;
    globalThis[Symbol.for("atlas.agent.slot")] = { contract, context: () => this.#contexts.getStore() ?? this.#latest ?? noJob() };
    try {
      if (contract.type === "orchestrator") throw new NoImplementation("an orchestrator is written in Python; the provider node runs agents");
      this.#agent = await load(this.#directory);
    } catch (error) {
      await this.#failed(error instanceof NoImplementation ? "load" : "import", error);
      return;
    }
    try {
      await this.#agent.onStartup?.();
    } catch (error) {
      await this.#failed("startup", error);
      return;
    }
    await log.flushed();
    this.#channel.send({ type: "ready" });
  }

  async #failed(stage, error) {
    if (stage !== "load") console.error(error instanceof ImportError ? error.cause : error);
    await log.flushed();
    this.#channel.send({ type: "failed", stage, error: described(error) });
  }

  async #execute(frame) {
    const run = this.#begin(frame);
    const { context } = run;
    let answer;
    try {
      const output = await this.#contexts.run(context, async () => this.#agent.execute(frame.input, context));
      answer = encodedAnswer(run, output);
    } catch (error) {
      // A run that has left or failed has no answer of its own.
      if (this.#run === run) console.error(error);
      answer = errorAnswer(frame.number, error, context);
    }
    if (this.#run !== run) return;
    this.#end();
    await log.flushed();
    this.#channel.sendText(answer);
  }

  #begin(frame) {
    setVariables(frame.context);
    const run = { number: frame.number, resources: resources() };
    if (frame.context.durable === true) {
      const place = () => this.#place();
      const isQuiet = () => process.getActiveResourcesInfo().every((name) => name.startsWith("Pipe")) && pipes() <= OWN_PIPES;
      run.record = new Record(frame, this.#channel, { place, isQuiet, fail: (error) => this.#stop(described(error)) });
    } else {
      run.calls = new Calls(frame.number, this.#channel, this.#calls);
    }
    const { effects, requires } = this.#contract;
    run.context = new Context(frame, { channel: this.#channel, record: run.record, calls: run.calls, effects, requires });
    this.#run = run;
    this.#latest = run.context;
    return run;
  }

  /** Nothing of the current run goes on. */
  #end(reason) {
    const run = this.#run;
    this.#run = undefined;
    this.#calls = run.calls?.last ?? this.#calls;
    run.context.end(reason);
    return run;
  }

  #called(frame) {
    if (frame.stop !== undefined) this.#stop(frame.stop);
    else this.#run?.record?.answered(frame);
  }

  /** The job cannot go on. */
  async #stop(text) {
    if (this.#run === undefined) return;
    const { number, context } = this.#end();
    await log.flushed();
    this.#channel.sendText(members({ type: "error", number, error: text }, metadata(context)));
  }

  /** The job is parked. What the run has left open, such as timers, nobody would close, so the process ends with it. */
  async #leave({ number }) {
    if (this.#run?.number !== number) return;
    const { resources: before } = this.#end(new Parked());
    // What listens for the signal has a turn of the loop to close what it holds.
    await new Promise((done) => setImmediate(done));
    await new Promise((done) => setImmediate(done));
    if (Object.entries(resources()).some(([name, count]) => count > (before[name] ?? 0))) {
      await this.#exit(0);
      return;
    }
    await log.flushed();
    this.#channel.send({ type: "left", number });
  }

  async #shutdown() {
    try {
      await this.#agent?.onShutdown?.();
    } catch (error) {
      console.error(error);
    }
    await log.flushed();
    this.#channel.send({ type: "stopped" });
    await this.#exit(0);
  }

  /** An error that no code of the agent catches. Whoever waits for an answer gets one, and the process ends. */
  async #astray(error) {
    console.error(error);
    const text = `${typeOf(error)} outside of execute${textOf(error) === typeOf(error) ? "" : `: ${textOf(error)}`}`;
    const run = this.#run && this.#end();
    await log.flushed();
    if (run !== undefined) this.#channel.send({ type: "error", number: run.number, error: text });
    else if (this.#agent === undefined) this.#channel.send({ type: "failed", stage: "startup", error: text });
    await this.#exit(1);
  }

  async #exit(code) {
    if (this.#isEnding) return;
    this.#isEnding = true;
    await log.flushed();
    await this.#channel.drained();
    process.exit(code);
  }

  /** The line of the agent that calls, such as `agent.mjs:31`. */
  #place() {
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 40;
    const { stack } = new Error();
    Error.stackTraceLimit = limit;
    const found = lineIn(this.#directory, stack);
    return found === undefined ? "" : `${found.file}:${found.line}`;
  }
}

function noJob() {
  throw new Error("no job runs yet; this.context is there in execute");
}

function pipes() {
  return process.getActiveResourcesInfo().filter((name) => name.startsWith("Pipe")).length;
}

/** How many of each kind keep the process in its loop. */
function resources() {
  const counts = {};
  for (const name of process.getActiveResourcesInfo()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

function encodedAnswer({ number, record, context }, output) {
  const claimed = record === undefined ? "" : `,"claimed":${record.claimed}`;
  const text = `{"type":"result","number":${number},"output":${encode(output, "what execute returned")}${claimed}}`;
  return members(text, metadata(context));
}

function errorAnswer(number, error, context) {
  const text = textOf(error);
  const more = isBare(text) ? { _error_type: typeOf(error) } : {};
  return members({ type: "error", number, error: text }, { ...metadata(context), ...more });
}

/** What the agent tells of its job: texts, numbers and flags. */
function metadata(context) {
  const isPlain = (value) => value === null || ["string", "boolean"].includes(typeof value) || Number.isFinite(value);
  const entries = Object.entries(context.executionMetadata ?? {}).filter(([, value]) => isPlain(value));
  return Object.fromEntries(entries);
}

function members(frame, executionMetadata) {
  const text = typeof frame === "string" ? frame : encode(frame, "the answer");
  if (Object.keys(executionMetadata).length === 0) return text;
  return `${text.slice(0, -1)},"execution_metadata":${encode(executionMetadata, "executionMetadata")}}`;
}

/** A slot serves many jobs; the variables that it was started with are those of the first one. */
function setVariables(fields) {
  process.env.ATLAS_JOB_ID = fields.job_id ?? "";
  const variables = { ATLAS_ATTEMPT: fields.attempt, TRACEPARENT: fields.traceparent };
  for (const [name, value] of Object.entries(variables)) {
    if (value === undefined || value === null) delete process.env[name];
    else process.env[name] = String(value);
  }
}

const [, , readFd, writeFd] = process.argv;
process.argv.splice(1, 3, "atlas-agent");
const channel = Channel.of(Number(readFd), Number(writeFd));
log.install(channel);
resolve.install();
new Host(channel).serve();
