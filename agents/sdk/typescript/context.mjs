// What an agent knows of its job, and the calls that it can make. One object for each run.

import { CallError, Failed, ModelError, SpawnError, StepError, ToolError } from "./errors.mjs";
import { Knowledge, SharedMemory } from "./library.mjs";
import { inStep, never } from "./record.mjs";
import { duration, moment } from "./times.mjs";

const SPAWN_TIMEOUT_S = 60;
// The job's own limit ends the wait.
const YEAR_S = 365 * 24 * 3600;
const RUN = "atlas.exec.run";
const EFFECTS = ["pure", "idempotent", "once"];

export class Context {
  #record; // of a durable agent
  #calls; // of another one
  #channel;
  #number;
  #effects;
  #noModel;
  #model;
  #skills;
  #tools;
  #requires;
  #stopper = new AbortController();
  #isOver = false;

  /** `record` is there for durable agents alone, `calls` for others. `effects` and `requires` are those of the contract. */
  constructor({ number, context: fields }, { channel, record, calls, effects, requires = {} }) {
    this.#number = number;
    this.#channel = channel;
    this.#record = record;
    this.#calls = calls;
    this.#effects = effects === "reconcilable" ? "once" : (effects ?? "idempotent");
    this.#model = fields.model;
    this.#noModel = fields.no_model ?? "";
    this.#tools = new Set(fields.tools);
    this.#requires = { memory: Boolean(requires.memory), knowledge: requires.knowledge?.enabled ?? requires.knowledge === true, documents: true };
    this.#skills = new Set(fields.skills);
    this.jobId = fields.job_id ?? "";
    this.attempt = fields.attempt ?? 1;
    this.traceparent = fields.traceparent;
    this.chainName = fields.chain_name ?? "";
    this.stepIndex = fields.step_index ?? -1;
    this.chainData = fields.chain_data ?? {};
    this.depth = fields.depth ?? 0;
    this.maxDepth = fields.max_depth ?? 3;
    this.spawnAllowed = fields.spawn_allowed ?? false;
    this.metadata = fields.metadata ?? {};
    this.secrets = fields.secrets ?? {};
    this.executionMetadata = {};
  }

  /** Aborted once the run ends, or once its job waits without this process: the place to free what a run holds. */
  get signal() {
    return this.#stopper.signal;
  }

  /** Whether the contract says `durable: true`. */
  get durable() {
    return this.#record !== undefined;
  }

  /** @internal */
  end(reason) {
    this.#isOver = true;
    this.#record?.end();
    this.#stopper.abort(reason);
  }

  // Steps and waits of durable agents.

  async step(name, run, { args, effects = this.#effects, retry, timeout, reconcile, signal } = {}) {
    const record = this.#durable("step");
    if (typeof run !== "function") throw new CallError(`step "${name}" needs a function as its second argument, and it is ${typeof run}`);
    if (!EFFECTS.includes(effects)) {
      throw new CallError(`step "${name}": effects is ${JSON.stringify(effects)}, and has to be one of ${EFFECTS.join(", ")}`);
    }
    const again = retries(name, retry);
    const limit = timeout === undefined ? undefined : duration(timeout, `the timeout of step "${name}"`);
    if (args !== undefined && !Array.isArray(args)) throw new CallError(`step "${name}": args is a list of the arguments`);
    const once = (info) => limited(name, limit, info, (info) => (args === undefined ? run(info) : run(...args)));
    once.isFinal = (error) => !again.on(error);
    const look = reconcile && ((info) => (args === undefined ? reconcile(info) : reconcile(...args)));
    const members = { effects, reconcile: look !== undefined };
    for (let failed = 1; ; failed += 1) {
      try {
        return await record.call("step", name, args ?? [], members, { run: once, reconcile: look, signal });
      } catch (error) {
        if (!(error instanceof StepError) || failed >= again.attempts || !error.retry) throw error;
      }
      await this.#pause(Math.min(again.delay * again.backoff ** (failed - 1), again.maxDelay), signal);
    }
  }

  async sleep(time, { signal } = {}) {
    this.#durable("sleep");
    await this.#pause(duration(time, "the time of sleep"), signal);
  }

  async #pause(us, signal) {
    if (us > 0) await this.#record.call("sleep", "", { for_us: Math.round(us) }, { for_us: Math.round(us) }, { signal, shown: `${us / 1e6} s` });
  }

  async until(time, { signal } = {}) {
    const wait = { until_us: moment(time, "the time of until") };
    const shown = `until ${new Date(wait.until_us / 1e3).toISOString()}`;
    await this.#durable("until").call("sleep", "", wait, wait, { signal, shown });
  }

  async ask(prompt, { kind, options, timeout, default: fallback, signal } = {}) {
    const record = this.#durable("ask");
    const question = { kind: kind ?? (options === undefined ? "text" : "choose"), prompt: String(prompt).toWellFormed() };
    if (options !== undefined) question.options = Array.from(options, String);
    if (timeout !== undefined) question.timeout_us = duration(timeout, "the timeout of ask");
    if (fallback !== undefined) question.default = fallback;
    return record.call("ask", question.kind, question, { question }, { signal, shown: question.prompt });
  }

  async receive(channel = "", { timeout, signal } = {}) {
    const record = this.#durable("receive");
    const wait = timeout === undefined ? {} : { for_us: duration(timeout, "the timeout of receive") };
    const message = await record.call("receive", channel, [], wait, { signal });
    if (message === null) return null;
    const { at_us: us, ...members } = message;
    return { ...members, at: new Date((us ?? 0) / 1e3) };
  }

  async version(name) {
    return (await this.#durable("version").call("version", name, [], {})) === true;
  }

  now() {
    return new Date(this.#durable("now").nowMs);
  }

  random() {
    // As many bits as a number between 0 and 1 has.
    return Number(this.#durable("random").draw().readBigUInt64BE(0) >> 11n) / 2 ** 53;
  }

  uuid() {
    const bytes = this.#durable("uuid").draw().subarray(0, 16);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  }

  get idempotencyKey() {
    this.#durable("idempotencyKey");
    return inStep.getStore()?.key ?? this.jobId;
  }

  #durable(name) {
    if (this.#record !== undefined) return this.#record;
    throw new CallError(`ctx.${name} needs a durable agent; write "durable: true" into agent.yaml`);
  }

  // Calls of all agents.

  async spawn(agent, input, { priority = 0, timeout, signal } = {}) {
    if (!this.spawnAllowed) throw new SpawnError("the agent has no permission to spawn; write requires: { spawn_agents: true } into agent.yaml");
    if (this.depth >= this.maxDepth) throw new SpawnError(`Max spawn depth (${this.maxDepth}) exceeded at depth ${this.depth}`);
    const seconds = timeout === undefined ? (this.durable ? YEAR_S : SPAWN_TIMEOUT_S) : duration(timeout, "the timeout of spawn") / 1e6;
    const end = await this.#spawned({ agent: String(agent), skill: false, input, priority, timeout: seconds }, signal);
    if ("refused" in end) throw new SpawnError(end.refused);
    return "data" in end ? { success: true, data: end.data, error: "" } : { success: false, data: {}, error: end.error };
  }

  async spawnAll(jobs, options = {}) {
    return Promise.all(Array.from(jobs, ({ agent, input, ...own }) => this.spawn(agent, input, { ...options, ...own })));
  }

  async callTool(name, input = {}, { signal } = {}) {
    if (name === RUN && this.#tools.has(RUN)) return this.#runAgent(input);
    const isSkill = this.#skills.has(name);
    if (!isSkill && !this.#tools.has(name)) {
      throw new ToolError(`the agent does not have the tool or skill "${name}"; list it in requires.skills of agent.yaml`);
    }
    const end = isSkill
      ? await this.#spawned({ agent: name, skill: true, input, priority: 0, timeout: YEAR_S }, signal)
      : await this.#asked("tool", name, input, { tool: name, input }, signal);
    if ("data" in end) return end.data;
    throw new ToolError(end.refused ?? end.error);
  }

  get memory() {
    return new SharedMemory((tool, input, options) => this.#library("memory", tool, input, options));
  }

  get knowledge() {
    return new Knowledge((tool, input, options) => this.#library("knowledge", tool, input, options));
  }

  async searchDocuments(base, query, { topK, source, metadata, ...options } = {}) {
    const input = { base: String(base), query: String(query), top_k: topK, source, metadata };
    return (await this.#library("documents", "atlas.documents.search", input, options))?.hits ?? [];
  }

  /** A call of shared memory, knowledge or a document base; `undefined` if the contract does not enable it. */
  async #library(what, tool, input, { signal } = {}) {
    if (!this.#requires[what]) return undefined;
    const end = await this.#asked("tool", tool, input, { tool, input }, signal);
    if ("data" in end) return end.data;
    throw new ToolError(end.refused ?? end.error);
  }

  async model(prompt, { system, maxTokens, temperature, signal } = {}) {
    if (this.#model === undefined) throw new ModelError(`the job has no model: ${this.#noModel}`);
    const said = typeof prompt === "string" ? { prompt } : messages(prompt, system);
    const input = { system: system ?? null, ...said, max_tokens: maxTokens ?? null, temperature: temperature ?? null };
    const end = await this.#asked("model", "", input, { input }, signal);
    // A record has the answer itself.
    const answer = this.durable ? end : end.data;
    if (answer === undefined) throw new ModelError(end.refused ?? end.error);
    return { text: answer.text, inputTokens: answer.input_tokens, outputTokens: answer.output_tokens, model: answer.model };
  }

  progress(text) {
    if (!this.#isOver) this.#channel.send({ type: "progress", text: String(text).toWellFormed() });
  }

  delta(text, { step = 0, attempt = 1 } = {}) {
    if (this.#isOver) return;
    const frame = { step: Math.max(0, Math.trunc(step)), try: Math.max(1, Math.trunc(attempt)), text: String(text).toWellFormed() };
    this.#channel.send({ type: "delta", number: this.#number, ...frame });
  }

  /** The tool `atlas.exec.run`: a job that this one spawns. It tells a failure as a value. */
  async #runAgent(input) {
    const agent = String(input.agent ?? "");
    const result = { success: false, data: null, error: "", agent_name: agent };
    if (agent === "") return { ...result, error: "Missing 'agent' parameter" };
    try {
      const child = await this.spawn(agent, input.input ?? {}, { timeout: YEAR_S });
      if (child.success) return { ...result, success: true, data: child.data };
      const isUnknown = child.error.startsWith("Pool error: Agent not found");
      return { ...result, error: isUnknown ? `Agent not found: ${agent}` : child.error };
    } catch (error) {
      if (error instanceof SpawnError) return { ...result, error: error.message };
      throw error;
    }
  }

  #spawned(members, signal) {
    return this.#asked("spawn", members.agent, [members.input, members.skill], members, signal);
  }

  /** One of the calls that all agents can make. */
  async #asked(kind, name, given, members, signal) {
    if (this.#record === undefined) return this.#isOver ? never() : this.#calls.ask(kind, members, signal);
    try {
      return await this.#record.call(kind, name, given, members, { signal });
    } catch (error) {
      // The failure of a child or of a tool is a value.
      if (error instanceof Failed) return { error: error.message };
      throw error;
    }
  }
}

/** How often a step is tried, in microseconds; `on` says which errors are tried again. */
function retries(name, retry) {
  const given = typeof retry === "number" ? { attempts: retry } : (retry ?? { attempts: 1 });
  const { attempts = 3, delay = 1, backoff = 2, maxDelay = 300, on = () => true, ...unknown } = given;
  const [wrong] = Object.keys(unknown);
  if (wrong !== undefined) throw new CallError(`step "${name}": retry has no member "${wrong}"; it has attempts, delay, backoff, maxDelay and on`);
  if (!Number.isInteger(attempts) || attempts < 1) throw new CallError(`step "${name}": attempts is ${attempts}, and has to be a whole number from 1`);
  if (!(backoff >= 1)) throw new CallError(`step "${name}": backoff is ${backoff}, and has to be a number from 1`);
  return { attempts, backoff, on, delay: duration(delay, "delay"), maxDelay: duration(maxDelay, "maxDelay") };
}

/** A list of messages as the worker takes it: what the system says is apart from it. */
function messages(list, system) {
  const all = Array.from(list, ({ role, content }) => ({ role: String(role), content: String(content) }));
  const texts = all.filter(({ role }) => role === "system").map(({ content }) => content);
  const said = { messages: all.filter(({ role }) => role !== "system") };
  return texts.length === 0 ? said : { ...said, system: [...(system ? [system] : []), ...texts].join("\n\n") };
}

/** Runs the function of a step for at most so many microseconds. Its signal tells it to stop. */
async function limited(name, limit, info, run) {
  if (limit === undefined) return run(info);
  const expired = new AbortController();
  const both = AbortSignal.any([info.signal, expired.signal]);
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => {
      const error = new Error(`step "${name}" took longer than ${limit / 1e6} s`);
      error.name = "TimeoutError";
      reject(error);
      expired.abort(error);
    }, limit / 1e3);
  });
  try {
    return await Promise.race([run({ ...info, signal: both }), late]);
  } finally {
    clearTimeout(timer);
  }
}
