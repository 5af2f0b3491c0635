import assert from "node:assert/strict";
import { test } from "node:test";

import { Ledger, Worker } from "./worker.mjs";

const HEAD = 'import { Agent, agent, DID_NOT_HAPPEN, StepError, QuestionError } from "@atlas/agent";\n';

const start = (code, contract = {}) => Worker.start(HEAD + code, { durable: true, ...contract });

/** Runs it once, then again with the record sent ahead and with the record asked for; all ends are the same, and no step runs twice. */
async function replayed(code, input = {}, answers = {}) {
  const worker = await start(code);
  const ledger = new Ledger(answers);
  const first = await ledger.attempt(worker, input);
  const made = [...ledger.made];
  const records = ledger.records.length;
  for (const past of [true, false]) {
    const again = await ledger.attempt(worker, input, { past });
    assert.deepEqual({ ...again, number: 0, claimed: 0 }, { ...first, number: 0 }, `past ${past}`);
    assert.deepEqual(ledger.made, made);
    assert.equal(ledger.records.length, records);
  }
  await worker.stop();
  return { end: first, ledger, worker };
}

test("a sequence is replayed without a call", async () => {
  const { end, ledger, worker } = await replayed(`export default agent(async (input, ctx) => {
    let sum = 0;
    for (let n = 0; n < 200; n += 1) sum += await ctx.step("add", (n) => n * input.by, { args: [n] });
    await ctx.sleep("1h");
    return { sum, at: ctx.now().toISOString() };
  });`, { by: 2 });
  assert.deepEqual(end.output, { sum: 39800, at: "2023-11-14T22:16:41.000Z" });
  assert.equal(ledger.made.length, 200);
  assert.deepEqual(worker.frames.filter(({ type }) => type === "result").map(({ claimed }) => claimed), [0, 201, 0]);
  // 201 of the first attempt, none of that with the record, 201 of that without.
  assert.equal(worker.frames.filter(({ type }) => type === "call").length, 402);
});

test("calls say who they are", async () => {
  const { worker } = await replayed(`
    export default agent(async (_, ctx) => {
      await ctx.step("a", () => 1, { args: [{ b: 1, a: "é" }], effects: "once" });
      await ctx.step("a", () => 1, { args: [{ a: "é", b: 1 }] });
      await ctx.until(new Date(1_800_000_000_000));
      await ctx.receive("orders", { timeout: "30s" });
      await ctx.ask("Really?", { options: ["yes", "no"], timeout: 60, default: "no" });
      return { v: await ctx.version("v2") };
    });`);
  const calls = worker.frames.filter(({ type }) => type === "call").slice(0, 6);
  const [a, b, until, receive, ask, version] = calls;
  assert.equal(a.digest, b.digest);
  assert.match(a.digest, /^[0-9a-f]{16}$/);
  assert.deepEqual([a.id, b.id], [`step:a:${a.digest}:1`, `step:a:${a.digest}:2`]);
  assert.deepEqual([a.effects, b.effects, a.reconcile], ["once", "idempotent", false]);
  assert.deepEqual([a.given, a.at, a.claimed, a.alone], ['[{"a":"é","b":1}]', "agent.mjs:4", 0, true]);
  assert.deepEqual([until.kind, until.name, until.until_us], ["sleep", "", 1_800_000_000_000_000]);
  assert.deepEqual([receive.kind, receive.name, receive.for_us], ["receive", "orders", 30_000_000]);
  assert.deepEqual([ask.name, ask.question], ["choose", { kind: "choose", prompt: "Really?", options: ["yes", "no"], timeout_us: 60_000_000, default: "no" }]);
  assert.deepEqual([version.kind, version.name], ["version", "v2"]);
});

test("what happens at the same time is replayed in the order of its ends", async () => {
  const { end, ledger } = await replayed(`
    const wait = (ms) => new Promise((done) => setTimeout(done, ms));
    export default agent(async (_, ctx) => {
      const order = [];
      const one = async (name, ms) => {
        await ctx.step(name, () => wait(ms));
        order.push(name);
        await ctx.step("after " + name, () => null);
        order.push("after " + name);
      };
      await Promise.all([one("slow", 60), one("fast", 1), one("middle", 25)]);
      const x = ctx.step("x", () => wait(40).then(() => "x"));
      const first = await Promise.race([x, ctx.step("y", () => wait(2).then(() => "y"))]);
      await x;
      return { order, first };
    });`);
  assert.equal(end.output.first, "y");
  assert.deepEqual(end.output.order.filter((name) => !name.startsWith("after")), ["fast", "middle", "slow"]);
  assert.equal(ledger.made.length, 8);
});

test("more calls than the worker takes at a time wait for their turn", async () => {
  const worker = await start(`export default agent(async (_, ctx) => {
    const all = await Promise.all(Array.from({ length: 2500 }, (_, n) => ctx.step("s", (n) => n, { args: [n] })));
    return { sum: all.reduce((sum, n) => sum + n, 0) };
  });`);
  worker.begin({}, { durable: true });
  const open = new Map();
  let [most, end] = [0, undefined];
  worker.ended.then((frame) => (end = frame));
  for (let at = 0; end === undefined; ) {
    await new Promise((done) => setTimeout(done, 1));
    for (; at < worker.frames.length; at += 1) {
      const { type, call, value } = worker.frames[at];
      if (type === "call") open.set(call, false);
      if (type === "made") {
        open.delete(call);
        worker.send({ type: "called", call, value, at_us: 1 });
      }
    }
    most = Math.max(most, open.size);
    for (const [call, isMade] of open) {
      if (isMade) continue;
      open.set(call, true);
      worker.send({ type: "called", call, make: true, key: "k" });
    }
  }
  assert.deepEqual((await worker.ended).output, { sum: (2500 * 2499) / 2 });
  // How many of them are seen at once depends on when this looks.
  assert.ok(most > 1 && most <= 1000, `${most} at once`);
  await worker.stop();
});

test("the loser of a race can be left", async () => {
  const { end, worker } = await replayed(`export default agent(async (_, ctx) => {
    const left = new AbortController();
    const won = await Promise.race([ctx.receive("a", { signal: left.signal }).then(() => "message"), ctx.step("s", () => 1).then(() => "step")]);
    left.abort();
    return { won, now: await ctx.step("then", () => 2) };
  });`, {}, { receive: () => "wait" });
  assert.deepEqual(end.output, { won: "step", now: 2 });
  assert.ok(worker.frames.some(({ type }) => type === "forget"));
});

test("values that only look random are the same in each attempt", async () => {
  const { end } = await replayed(`export default agent(async (_, ctx) => {
    const before = [ctx.random(), ctx.uuid()];
    const key = await ctx.step("s", () => [ctx.idempotencyKey, ctx.uuid()]);
    return { before, key, after: [ctx.random(), ctx.uuid()], job: ctx.idempotencyKey };
  });`);
  const { before, key, after, job } = end.output;
  assert.match(before[1], /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.ok(before[0] > 0 && before[0] < 1 && before[0] !== after[0]);
  assert.equal(new Set([before[1], key[1], after[1]]).size, 3);
  assert.match(key[0], /^key-step:s:/);
  assert.equal(job, "job-1");
});

test("errors of steps are recorded, and tried again as steps of their own", async () => {
  const { end, ledger } = await replayed(`
    let tries = 0;
    export default agent(async (_, ctx) => {
      const caught = [];
      const value = await ctx.step("flaky", () => { if ((tries += 1) < 3) throw new RangeError("not yet"); return tries; }, { retry: { attempts: 4, delay: "2s" } });
      try { await ctx.step("bad", () => { throw new TypeError("kaput"); }); } catch (error) { caught.push(error instanceof StepError, error.step, error.type, error.text, error.message); }
      try { await ctx.step("final", () => { throw new TypeError("no"); }, { retry: { attempts: 5, on: (error) => !(error instanceof TypeError) } }); } catch (error) { caught.push(error.message); }
      try { await ctx.step("odd", () => new Map()); } catch (error) { caught.push(error.message); }
      try { await ctx.step("slow", () => new Promise(() => {}), { timeout: "5ms" }); } catch (error) { caught.push(error.type); }
      return { value, caught };
    });`);
  assert.deepEqual(end.output, {
    value: 3,
    caught: [
      true, "bad", "TypeError", "kaput", 'step "bad" failed: TypeError: kaput',
      'step "final" failed: TypeError: no',
      'step "odd" failed: PlainError: the result of step "odd" is a Map, of which JSON would keep nothing; use Object.fromEntries(…)',
      "TimeoutError",
    ],
  });
  assert.deepEqual(ledger.made, ["flaky", "flaky", "flaky", "bad", "final", "odd", "slow"]);
  const sleeps = ledger.records.filter(([id]) => id.startsWith("sleep"));
  assert.equal(sleeps.length, 2);
});

test("a lost attempt goes on after what is recorded", async () => {
  const code = `export default agent(async (input, ctx) => {
    const a = await ctx.step("a", () => 1);
    const b = await ctx.step("b", () => a + 1);
    return { sum: b + (await ctx.step("c", () => 10)) };
  });`;
  const ledger = new Ledger();
  for (const lost of ["a", "b", "c"]) {
    const worker = await start(code);
    const end = await ledger.attempt(worker, {}, { past: lost !== "b", lose: (frame) => frame.type === "made" && ledger.made.at(-1) === lost });
    assert.equal(end.type, "lost");
  }
  const worker = await start(code);
  assert.deepEqual((await ledger.attempt(worker, {}, { past: true })).output, { sum: 12 });
  // Each was under way once when its worker was lost, and ran again.
  assert.deepEqual(ledger.made, ["a", "a", "b", "b", "c", "c"]);
  await worker.stop();
});

test("a job that waits leaves its process, which goes on to the next run", async () => {
  const worker = await start(`
    let aborted = 0;
    export default class Waits extends Agent {
      async execute(_, ctx) {
        ctx.signal.addEventListener("abort", () => { aborted += 1; });
        try {
          await ctx.step("before", () => 1);
          const message = await ctx.receive("go");
          return { message, aborted, same: this.context === ctx };
        } catch (error) {
          console.log("caught", error.message);
        } finally {
          await ctx.step("finally", () => 2);
        }
      }
    }`);
  const ledger = new Ledger({ receive: () => "wait" });
  const end = await ledger.attempt(worker, {}, { until: (frame) => frame.kind === "receive" });
  assert.deepEqual({ ...end, number: 0 }, { type: "left", number: 0 });
  const pid = worker.child.pid;
  ledger.answers.receive = () => ({ value: { id: "m", from: "p", at_us: 1_800_000_000_000_000, body: { go: 1 } } });
  const ended = await ledger.attempt(worker, {}, { past: true });
  assert.deepEqual(ended.output, { message: { id: "m", from: "p", body: { go: 1 }, at: "2027-01-15T08:00:00.000Z" }, aborted: 1, same: true });
  assert.equal(worker.child.pid, pid);
  await worker.stop();
  assert.deepEqual(worker.lines, [], "nothing of the run that left went on");
  assert.deepEqual(ledger.made, ["before", "finally"]);
});

test("a run that leaves timers behind takes its process with it", async () => {
  const worker = await start("export default agent(async (_, ctx) => { setInterval(() => ctx.progress('x'), 1000); await ctx.sleep('1d'); });");
  const ledger = new Ledger({ sleep: () => "wait" });
  const end = await ledger.attempt(worker, {}, { until: (frame) => frame.kind === "sleep" });
  assert.equal(end.type, "end");
  assert.equal(await worker.exited, 0);
});

test("a socket that was closed does not hide a timer", async () => {
  const worker = await start(`
    import { createServer } from "node:net";
    const server = createServer().listen(0, "127.0.0.1");
    export default agent(async (_, ctx) => { server.close(); setInterval(() => {}, 1000); await ctx.sleep("1d"); });`);
  const ledger = new Ledger({ sleep: () => "wait" });
  assert.equal((await ledger.attempt(worker, {}, { until: (frame) => frame.kind === "sleep" })).type, "end");
});

test("a step that is left before it runs is over; one that runs is told", async () => {
  const worker = await start(`export default agent(async (_, ctx) => {
    const [early, late] = [new AbortController(), new AbortController()];
    const steps = [ctx.step("early", () => 1, { signal: early.signal }), ctx.step("late", () => { late.abort(); return 2; }, { signal: late.signal })];
    const all = Promise.allSettled([...steps, ctx.sleep("1d", { signal: early.signal })]);
    await ctx.receive("go");
    early.abort();
    await all;
    return {};
  });`);
  worker.begin({}, { durable: true });
  const calls = [await worker.next("call")];
  while (calls.length < 4) calls.push(worker.frames.filter(({ type }) => type === "call")[calls.length] ?? (await worker.next("call")));
  const of = (name) => calls.find((call) => call.name === name).call;
  worker.send({ type: "called", call: of("late"), make: true, key: "k" });
  worker.send({ type: "called", call: of("go"), value: null, at_us: 1 });
  assert.equal((await worker.ended).type, "result");
  const after = worker.frames.filter(({ type }) => type === "forget" || type === "made").map(({ type, call, over }) => [type, call, over]);
  const expected = [["forget", of("late"), undefined], ["made", of("late"), undefined], ["forget", of("early"), true], ["forget", of(""), undefined]];
  assert.deepEqual(after.sort(), expected.sort());
  await worker.stop();
});

test("the run stops at a difference, which names the line", async () => {
  const worker = await start(`export default agent(async (input, ctx) => {
    if (input.old) await ctx.step("a", () => 1);
    try { await ctx.step("b", () => 1); } catch {}
    return {};
  });`);
  const ledger = new Ledger();
  await ledger.attempt(worker, { old: true });
  const end = await ledger.attempt(worker, {}, { past: true });
  assert.deepEqual([end.type, end.error], ["error", "E3013: asked step b at agent.mjs:4"]);
  assert.equal((await ledger.attempt(worker, { old: true })).type, "result");
  await worker.stop();
});

test("a program that does something else is not alone", async () => {
  const worker = await start("export default agent(async (_, ctx) => { setTimeout(() => {}, 200); await ctx.step('a', () => 1); return {}; });");
  await new Ledger().attempt(worker, {});
  assert.equal(worker.frames.find(({ type }) => type === "call").alone, false);
  await worker.stop();
});

test("what was in doubt is looked up by the program", async () => {
  const worker = await start(`export default agent(async (input, ctx) => ({
    done: await ctx.step("charge", () => "now", { effects: "once", args: [5], reconcile: (amount) => {
      if (input.broken) throw new Error("no connection");
      return input.happened ? "before " + amount : DID_NOT_HAPPEN;
    } }),
  }));`);
  const doubt = async (input) => {
    const from = worker.frames.length;
    worker.begin(input, { durable: true });
    const call = await worker.next("call");
    worker.send({ type: "called", call: call.call, make: true, key: "k", again: true, doubt: true });
    const made = await worker.next("made", "forget");
    if (made.type === "forget") return [made, await worker.ended];
    if (made.reconciled === "did_not") {
      worker.send({ type: "called", call: call.call, make: true, key: "k", again: true });
      const then = await worker.next("made");
      worker.send({ type: "called", call: call.call, value: then.value, at_us: 1 });
    } else {
      worker.send({ type: "called", call: call.call, value: made.value, at_us: 1 });
    }
    return [made, await worker.ended, from];
  };
  assert.deepEqual((await doubt({ happened: true }))[1].output, { done: "before 5" });
  const [made, end] = await doubt({});
  assert.deepEqual([made.reconciled, made.value, end.output], ["did_not", undefined, { done: "now" }]);
  const [left, failed] = await doubt({ broken: true });
  assert.equal(left.over, true);
  assert.equal(failed.error, 'whether step "charge" happened could not be found out: Error: no connection');
  await worker.stop();
});

test("a call inside of a step, and a call with wrong arguments, say so", async () => {
  const { end } = await replayed(`
    const text = (made) => made.then(() => "none", (error) => error.message);
    export default agent(async (_, ctx) => ({
      inside: await text(ctx.step("outer", () => ctx.sleep(1))),
      name: await text(ctx.step("", () => 1)),
      function: await text(ctx.step("s", 3)),
      effects: await text(ctx.step("s", () => 1, { effects: "twice" })),
      retry: await text(ctx.step("s", () => 1, { retry: { attempt: 2 } })),
      time: await text(ctx.sleep("soon")),
      zone: await text(ctx.until("2026-12-24")),
      args: await text(ctx.step("s", () => 1, { args: [1n] })),
    }));`);
  assert.deepEqual(end.output, {
    inside: 'step "outer" failed: CallError: sleep "" is called inside of step "outer"; call it outside of that step',
    name: 'the name of a step is a text of 1 to 128 characters, and not ""',
    function: 'step "s" needs a function as its second argument, and it is number',
    effects: 'step "s": effects is "twice", and has to be one of pure, idempotent, once',
    retry: 'step "s": retry has no member "attempt"; it has attempts, delay, backoff, maxDelay and on',
    time: 'the time of sleep "soon" is not a duration; write a number of seconds, or a text such as "90s", "1h 30m" or "2d"',
    zone: 'the time of until "2026-12-24" is not a point in time; give a Date, or a text with its zone such as "2026-12-24T18:00:00Z"',
    args: "the arguments of step \"s\"[0] is a BigInt, which JSON does not have; use Number(…) or String(…)",
  });
});

test("children, tools and models of durable agents are calls", async () => {
  const worker = await start(`export default agent(async (_, ctx) => {
    const children = await ctx.spawnAll(["a", "b"].map((agent) => ({ agent, input: { agent } })));
    const tool = await ctx.callTool("t", { x: 1 });
    const model = await ctx.model([{ role: "system", content: "brief" }, { role: "user", content: "why" }]);
    const refused = await ctx.spawn("c", {}).catch((error) => error.name + ": " + error.message);
    return { children, tool, model, refused };
  });`);
  const ledger = new Ledger({
    spawn: ({ agent }) => ({ value: { a: { data: { ok: 1 } }, b: { error: "failed" }, c: { refused: "full" } }[agent] }),
    tool: () => ({ value: { data: { found: 1 } } }),
    model: () => ({ value: { text: "so", input_tokens: 1, output_tokens: 2, model: "m" } }),
  });
  for (const past of [false, true, false]) {
    const end = await attemptWith(ledger, worker, { past });
    assert.deepEqual(end.output, {
      children: [{ success: true, data: { ok: 1 }, error: "" }, { success: false, data: {}, error: "failed" }],
      tool: { found: 1 },
      model: { text: "so", inputTokens: 1, outputTokens: 2, model: "m" },
      refused: "SpawnError: full",
    }, `past ${past}`);
  }
  const model = worker.frames.find(({ kind }) => kind === "model");
  assert.deepEqual(model.input, { system: "brief", messages: [{ role: "user", content: "why" }], max_tokens: null, temperature: null });
  await worker.stop();
});

/** An attempt of a job that may spawn, with a tool and a model. */
function attemptWith(ledger, worker, options) {
  return ledger.attempt(worker, {}, { ...options, context: { spawn_allowed: true, tools: ["t"], model: "m" } });
}

test("what is too large is an error of its step", async () => {
  const { end } = await replayed(`
    const wide = "ü".repeat(40_000);
    export default agent(async (_, ctx) => {
      const said = [];
      for (const make of [() => wide, () => wide + wide, () => { throw new TypeError("x".repeat(100_000)); }]) {
        try {
          said.push((await ctx.step("large", make)).length);
        } catch (error) {
          said.push([error.type, error.text.slice(0, 70), error.text.length]);
        }
      }
      return { said };
    });`);
  const [length, large, thrown] = end.output.said;
  assert.equal(length, 40_000);
  assert.deepEqual(large.slice(0, 2), ["CallError", "the result of the step 'large' has 160002 bytes, more than 100000; kee"]);
  assert.deepEqual([thrown[0], thrown[2]], ["TypeError", 10_000]);
});
