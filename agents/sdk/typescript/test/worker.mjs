// A worker for tests: starts the host with an agent, and speaks its frames.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { Channel } from "../channel.mjs";

const HOST = fileURLToPath(new URL("../host.mjs", import.meta.url));

export class Worker {
  lines = [];
  frames = [];
  #waiting = [];
  #number = 0;

  /** Starts the host with files: their names and texts. */
  static async start(files, contract = {}) {
    const worker = new Worker();
    worker.directory = mkdtempSync(join(tmpdir(), "atlas-agent-"));
    const all = typeof files === "string" ? { "agent.mjs": files } : files;
    for (const [name, text] of Object.entries(all)) writeFileSync(join(worker.directory, name), text);
    worker.child = spawn(process.execPath, [HOST, "3", "4"], { cwd: worker.directory, stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"] });
    const { stdio } = worker.child;
    for (const [index, level] of [[1, "info"], [2, "error"]]) {
      let rest = "";
      stdio[index].setEncoding("utf8").on("data", (text) => {
        const lines = (rest + text).split("\n");
        rest = lines.pop();
        worker.lines.push(...lines.map((line) => `${level}: ${line}`));
      });
    }
    worker.channel = new Channel(stdio[4], stdio[3]);
    worker.channel.listen((frame) => worker.#take(frame), () => worker.#take({ type: "end" }));
    worker.exited = new Promise((done) => worker.child.on("exit", (code, signal) => done(code ?? signal)));
    worker.send({ type: "start", contract: { name: "a", ...contract }, directory: worker.directory });
    worker.started = await worker.next("ready", "failed", "end");
    return worker;
  }

  send(frame) {
    this.channel.send(frame);
  }

  #take(frame) {
    this.frames.push(frame);
    const index = this.#waiting.findIndex(({ types }) => types.includes(frame.type));
    if (index >= 0) this.#waiting.splice(index, 1)[0].resolve(frame);
  }

  /** The next frame of one of these types. Frames of other types are kept in `frames`. */
  next(...types) {
    return new Promise((resolve) => this.#waiting.push({ types, resolve }));
  }

  /** Starts a run. Its end is that of `ended`. */
  begin(input, context = {}, more = {}) {
    this.#number += 1;
    this.ended = this.next("result", "error", "left", "end");
    this.send({ type: "run", input, number: this.#number, context: { job_id: "job-1", attempt: 1, ...context }, ...more });
    return this.#number;
  }

  async run(input, context, more) {
    this.begin(input, context, more);
    return this.ended;
  }

  async stop() {
    this.send({ type: "shutdown" });
    const code = await this.exited;
    rmSync(this.directory, { recursive: true, force: true });
    return code;
  }
}

/** What a durable job has recorded, by the rules of the worker. */
export class Ledger {
  records = []; // [id, end, at_us], in their order
  made = []; // the names of the steps that ran
  #now = 1_700_000_000_000_000;
  #taken;
  #held = [];
  #open = new Map();
  #alones = new Set(); // ids of calls beside which no other was open

  constructor(answers = {}) {
    this.answers = answers;
  }

  /** Runs the job once in a worker. `past` sends all records ahead; `until` parks the job at a call that it is true of. */
  async attempt(worker, input, { past = false, until = () => false, lose = () => false, context = {} } = {}) {
    this.#taken = new Set();
    this.#held = [];
    this.#open = new Map();
    const from = worker.frames.length;
    const sent = { past: past ? this.#alone() : [], began_us: 1_700_000_000_000_000, seed: "7", value_bytes_max: 100_000 };
    const number = worker.begin(input, { durable: true, ...context }, sent);
    let at = from;
    let end;
    worker.ended.then((frame) => (end = frame));
    while (end === undefined) {
      await new Promise((done) => setTimeout(done, 2));
      for (; at < worker.frames.length; at += 1) {
        const frame = worker.frames[at];
        if (lose(frame, this)) {
          worker.child.kill("SIGKILL");
          await worker.exited;
          return { type: "lost" };
        }
        if (frame.type === "call") {
          for (let index = 0; index < frame.claimed; index += 1) this.#taken.add(index);
          this.#open.set(frame.call, frame);
          if (this.#open.size === 1) this.#alones.add(frame.id);
          else for (const { id } of this.#open.values()) this.#alones.delete(id);
          this.#held.push(frame);
        } else if (frame.type === "made") {
          this.#record(worker, this.#open.get(frame.call), frame.error ? { error: frame.error } : { value: frame.value ?? null });
        } else if (frame.type === "forget") {
          this.#open.delete(frame.call);
          this.#held = this.#held.filter(({ call }) => call !== frame.call);
        }
        if (frame.type === "call" && until(frame, this)) worker.send({ type: "leave", number });
      }
      this.#decide(worker);
    }
    return end;
  }

  /** What was recorded before the first call that was not alone. */
  #alone() {
    const end = this.records.findIndex(([id]) => !this.#alones.has(id));
    return end < 0 ? [...this.records] : this.records.slice(0, end);
  }

  #decide(worker) {
    for (let goesOn = true; goesOn; ) {
      goesOn = false;
      const next = this.records.findIndex((_, index) => !this.#taken.has(index));
      const index = this.#held.findIndex(({ id }) => (next < 0 ? true : this.records[next][0] === id));
      if (index < 0) {
        const [only] = this.#held;
        if (only?.alone === true && this.#held.length === 1) {
          worker.send({ type: "called", call: only.call, stop: `E3013: asked ${only.kind} ${only.name} at ${only.at}` });
          this.#held = [];
        }
        return;
      }
      const [frame] = this.#held.splice(index, 1);
      goesOn = true;
      if (next >= 0) {
        this.#taken.add(next);
        const [, end, at] = this.records[next];
        worker.send({ type: "called", call: frame.call, ...end, at_us: at });
      } else if (frame.kind === "step") {
        this.made.push(frame.name);
        worker.send({ type: "called", call: frame.call, make: true, key: `key-${frame.id}`, again: false });
      } else {
        const answer = this.answers[frame.kind]?.(frame) ?? { value: null };
        if (answer !== "wait") this.#record(worker, frame, answer);
      }
    }
  }

  /** Ends a call that waits, such as a sleep, with a value. */
  end(worker, kind, value = null) {
    const frame = [...this.#open.values()].find((open) => open.kind === kind);
    this.#record(worker, frame, { value });
  }

  #record(worker, frame, end) {
    this.#now += 1_000_000;
    this.#taken.add(this.records.length);
    this.records.push([frame.id, end, this.#now]);
    this.#open.delete(frame.call);
    worker.send({ type: "called", call: frame.call, ...end, at_us: this.#now });
  }
}
