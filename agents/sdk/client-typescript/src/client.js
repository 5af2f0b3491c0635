// The client: submit jobs, wait for them, follow them, answer what they ask, and talk to agents.

import { callOf } from "./calls.js";
import { Core, Events, newKey, now, sleep } from "./core.js";
import { AtlasError, JobCancelled, JobFailed, WaitTimeout, bad, isObject, text } from "./errors.js";
import { Operations } from "./operations.js";

/** Seconds that one request waits for the end of a job. */
const WAIT = 25;
/** Seconds before a job is asked for again if the answer came at once. */
const PAUSE = 0.25;
/** Retries that a wait follows. */
const RETRIES_MAX = 1000;
/** Seconds for which a message waits until the conversation has answered the one before. */
const TURN = 600;
/** Most bytes of an answer that are read into memory. */
const ANSWER_MAX = 64 << 20;
const ENDED = ["completed", "failed", "cancelled"];

/** A client of one cluster. `api` has every operation of the interface. */
export class BaseClient {
  constructor({ servers, token, namespace, transport, policy, deadline = 60, answerMax = ANSWER_MAX }) {
    this._core = new Core({ servers, token, namespace, transport, policy, deadline, answerMax });
    this.api = new Operations(this._core);
  }

  async submit(agent, input = {}, options = {}) {
    const { key = newKey(), validate = true, namespace, deadline, signal, budgetUsd, ...members } = options;
    const body = { agent, input, budget_usd: budgetUsd };
    for (const name of MEMBERS) body[name] = members[name];
    const query = { validate: validate ? "refuse" : undefined, idempotencyKey: key, namespace, signal };
    const answer = await this.api.submitJob(body, deadline === undefined ? query : { ...query, deadline });
    return text(answer, "id") || fail("it has no id of a job");
  }

  async wait(jobId, options = {}) {
    const job = await this.waitJob(jobId, options);
    if (job.status === "completed") return job.output_data;
    throw job.status === "cancelled" ? new JobCancelled(job) : new JobFailed(job);
  }

  async waitJob(jobId, { deadline, onQuestion, namespace, signal } = {}) {
    const until = deadline === undefined ? Infinity : now() + deadline;
    const leftOpen = new Set();
    let latest = jobId;
    let retries = 0;
    for (;;) {
      const begun = now();
      const left = Math.min(until - begun, WAIT);
      if (left <= 0) throw new WaitTimeout(latest, deadline);
      const job = await this.api.waitForJob(latest, {
        timeout: Math.max(Math.round(left * 1000) / 1000, 0.001),
        questions: onQuestion ? true : undefined,
        view: "full",
        namespace,
        signal,
      });
      if (!isObject(job)) fail("it is no job");
      if (ENDED.includes(job.status)) {
        const retry = text(job, "retried_by");
        if (retry === "" || retries >= RETRIES_MAX) return job;
        latest = retry;
        retries += 1;
        continue;
      }
      const asked = onQuestion && Array.isArray(job.needs_answer) ? job.needs_answer : [];
      const news = asked.filter((one) => typeof one === "string" && !leftOpen.has(one));
      for (const question of news) {
        leftOpen.add(question);
        await this._ask(question, onQuestion, { namespace, signal });
      }
      // Also a server that answers at once is not asked without a pause.
      if (news.length === 0 && now() - begun < PAUSE) {
        await sleep(Math.max(Math.min(PAUSE, until - now()), 0), signal);
      }
    }
  }

  async _ask(question, onQuestion, options) {
    const shown = await this.api.getQuestion(question, options);
    if (!isObject(shown) || (shown.status ?? "open") !== "open") return;
    const answer = await onQuestion(shown);
    if (answer === undefined || answer === null) return;
    try {
      await this.answer(question, answer, options);
    } catch (error) {
      // Somebody else answered first: the first answer stands.
      if (!(error instanceof AtlasError) || error.code !== "E3041") throw error;
    }
  }

  async run(agent, input = {}, options = {}) {
    const { deadline, onQuestion, ...submission } = options;
    if (onQuestion) submission.questions ??= "wait";
    const until = deadline === undefined ? Infinity : now() + deadline;
    const within = deadline === undefined ? {} : { deadline: Math.min(deadline, this._core.deadline ?? Infinity) };
    const jobId = await this.submit(agent, input, { ...submission, ...within });
    const { namespace, signal } = options;
    return this.wait(jobId, { deadline: left(until), onQuestion, namespace, signal });
  }

  stream(jobId, { after = "", deltas = false, namespace, signal } = {}) {
    const query = { view: "full", deltas: deltas ? true : undefined, namespace };
    const call = callOf(this._core, "GET", "/api/jobs/{id}/events", { id: jobId }, query, {}, undefined, { signal });
    return new Events(this._core, call, {
      last: after,
      ends: ({ data }) => ENDED.includes(text(data, "new_status")),
      isOver: async () => ENDED.includes(text(await this.api.getJob(jobId, { namespace, signal }), "status")),
    });
  }

  job(jobId, options = {}) {
    return this.api.getJob(jobId, { view: "full", ...options });
  }

  async cancel(jobId, options = {}) {
    return (await this.api.cancelJob(jobId, options))?.cancelled === true;
  }

  answer(questionId, answer, options = {}) {
    return this.api.answerQuestion(questionId, { answer }, options);
  }

  async send(agent, message, { conversation, input = {}, deadline, ...options }) {
    const until = deadline === undefined ? Infinity : now() + deadline;
    const turn = Math.min(TURN, deadline ?? TURN);
    const jobId = await this.submit(agent, { ...input, message }, { ...options, conversation, deadline: turn });
    const { namespace, signal } = options;
    const output = await this.wait(jobId, { deadline: left(until), namespace, signal });
    return { text: replyText(output), output, jobId };
  }

  conversation(conversationId, options = {}) {
    return this.api.getConversation(conversationId, options);
  }

  upload(bytes, { replace = false, ...options } = {}) {
    return this.api.registerAgent(bytes, { replace: replace ? true : undefined, ...options });
  }

  close() {
    this._core.transport.close?.();
  }
}

/** Members of a submission that have the same name here. */
const MEMBERS = ["version", "priority", "labels", "timeout", "at", "questions", "unsatisfiable", "title", "conversation"];

function left(until) {
  return until === Infinity ? undefined : Math.max(until - now(), 0.001);
}

function fail(why) {
  throw bad(why);
}

/** The text of an output: its member `result`, `message` or `text`, or its only member; otherwise JSON. */
function replyText(output) {
  if (typeof output === "string") return output;
  const named = ["result", "message", "text"].map((name) => isObject(output) && output[name]);
  const values = isObject(output) ? Object.values(output) : [];
  const found = [...named, values.length === 1 && values[0]].find((value) => typeof value === "string");
  return found ?? JSON.stringify(output);
}
