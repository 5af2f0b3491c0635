import assert from "node:assert/strict";
import { test } from "node:test";

import { Worker } from "./worker.mjs";

const HEAD = 'import { Agent, agent, SpawnError } from "@atlas/agent";\n';

async function once(code, input = {}, context = {}, contract = {}) {
  const worker = await Worker.start(HEAD + code, contract);
  const end = worker.started.type === "ready" ? await worker.run(input, context) : worker.started;
  const number = end.number;
  delete end.number;
  await worker.stop();
  return { end, worker, number };
}

test("a class serves job after job", async () => {
  const worker = await Worker.start(`${HEAD}
    export default class Counter extends Agent {
      async onStartup() { this.n = 0; }
      async onShutdown() { console.log("bye"); }
      async execute(input) {
        this.n += input.by;
        return { n: this.n, job: this.context.jobId, name: this.contract.name, env: process.env.ATLAS_JOB_ID };
      }
    }`);
  assert.deepEqual((await worker.run({ by: 2 })).output, { n: 2, job: "job-1", name: "a", env: "job-1" });
  assert.deepEqual((await worker.run({ by: 3 }, { job_id: "job-2" })).output, { n: 5, job: "job-2", name: "a", env: "job-2" });
  assert.equal(await worker.stop(), 0);
  assert.deepEqual(worker.lines, ["info: bye"]);
});

test("a function is an agent too", async () => {
  const { end } = await once("export default agent(async (input, ctx) => ({ ...input, depth: ctx.depth, team: ctx.metadata.team }));", { a: 1 }, { metadata: { team: "x" } });
  assert.deepEqual(end, { type: "result", output: { a: 1, depth: 0, team: "x" } });
});

test("prints are lines, and levels are kept", async () => {
  const { end, worker } = await once(`export default agent(async (_, ctx) => {
    console.log("printed\\nwith %s", { a: 1 });
    console.error("bad");
    console.warn("careful", 3);
    console.debug("detail");
    ctx.progress("half");
    ctx.delta("Hel", { step: 2 });
    process.stdout.write("no newline");
    ctx.executionMetadata.model = "m";
    ctx.executionMetadata.dropped = [1];
    return {};
  });`);
  assert.deepEqual(end, { type: "result", output: {}, execution_metadata: { model: "m" } });
  assert.deepEqual(worker.lines.toSorted(), ["error: bad", "info: printed", "info: with { a: 1 }"]);
  const said = worker.frames.filter(({ type }) => ["log", "progress", "delta"].includes(type)).map(({ number, ...frame }) => frame);
  assert.deepEqual(said, [
    { type: "log", level: "warning", text: "careful 3" },
    { type: "log", level: "debug", text: "detail" },
    { type: "progress", text: "half" },
    { type: "delta", step: 2, try: 1, text: "Hel" },
  ]);
});

for (const [what, code, error] of [
  ["undefined", "undefined", "what execute returned is undefined, which JSON does not have; use null or an object"],
  ["a BigInt", "{ a: [1, 2n] }", "what execute returned.a[1] is a BigInt, which JSON does not have; use Number(…) or String(…)"],
  ["not a number", "{ score: NaN }", "what execute returned.score is NaN, which JSON does not have; use null or a text"],
  ["a map", "{ m: new Map() }", "what execute returned.m is a Map, of which JSON would keep nothing; use Object.fromEntries(…)"],
  ["itself", "(() => { const a = {}; a.a = a; return a; })()", "what execute returned.a is a value that contains itself, which JSON does not have"],
]) {
  test(`an output of ${what} is an error that says so`, async () => {
    const { end } = await once(`export default agent(() => (${code}));`);
    assert.deepEqual(end, { type: "error", error });
  });
}

test("texts are whole characters", async () => {
  const { end, worker } = await once('export default agent((_, ctx) => { ctx.progress("a\\ud83d"); return { t: "\\udc00😀\\\\ud800", optional: undefined }; });');
  assert.deepEqual(end.output, { t: "\ufffd😀\\ud800" });
  assert.equal(worker.frames.find(({ type }) => type === "progress").text, "a\ufffd");
});

test("what execute throws is the error, and its class where that is needed", async () => {
  for (const [thrown, answer] of [
    ['new RangeError("kaput")', { error: "kaput" }],
    ["new RangeError()", { error: "RangeError" }],
    ['new RangeError("7")', { error: "7", execution_metadata: { _error_type: "RangeError" } }],
    ['"text"', { error: "text" }],
    ["undefined", { error: "undefined", execution_metadata: { _error_type: "undefined" } }],
    ["{ code: 12 }", { error: '{"code":12}' }],
  ]) {
    const { end } = await once(`export default agent(async () => { throw ${thrown}; });`);
    assert.deepEqual(end, { type: "error", ...answer });
  }
});

test("an error outside of execute ends the process, and the job has it", async () => {
  const worker = await Worker.start(`${HEAD}export default agent(async () => { setTimeout(() => { throw new TypeError("late"); }, 1); await new Promise(() => {}); });`);
  const end = await worker.run({});
  assert.equal(end.error, "TypeError outside of execute: late");
  assert.equal(await worker.exited, 1);
});

test("what cannot be loaded is told with its place", async () => {
  const started = async (files) => {
    const worker = await Worker.start(files);
    await worker.stop();
    const { stage, error } = worker.started;
    return `${stage}: ${error.replaceAll(worker.directory, "DIR")}`;
  };
  assert.equal(await started({ "x.mjs": "" }), "load: the package has none of agent.mjs, agent.js, agent.ts");
  assert.match(await started("export const a = 1;"), /^load: agent.mjs exports no agent \(it has no default export\); write export default/);
  assert.match(await started("export default 3;"), /^load: agent.mjs exports no agent \(its default export is a number\)/);
  assert.equal(await started("\nconst = 3;"), "import: agent.mjs, line 2: SyntaxError: Unexpected token '='");
  assert.equal(await started("\n\nthrow new TypeError('boo');"), "import: agent.mjs, line 3: TypeError: boo");
  assert.match(await started('import "nope";'), /^import: agent.mjs: Error: Cannot find package 'nope' imported from DIR\/agent.mjs$/);
  assert.match(await started({ "agent.mjs": 'import { x } from "./b.mjs";', "b.mjs": "export const y = 1;" }), /^import: agent.mjs, line 1: SyntaxError: The requested module/);
  assert.equal(await started({ "agent.mjs": 'import "./b.mjs";', "b.mjs": "null.x;" }), "import: b.mjs, line 1: TypeError: Cannot read properties of null (reading 'x')");
  assert.equal(await started("export default class { async execute() {} onStartup() { throw new Error('no model'); } }"), "startup: no model");
});

test("a file agent.js is a module of either kind", async () => {
  for (const text of ["module.exports = { execute: async (input) => input };", "exports.__esModule = true; exports.default = { execute: async (input) => input };"]) {
    const worker = await Worker.start({ "agent.js": text });
    assert.deepEqual((await worker.run({ a: 1 })).output, { a: 1 });
    await worker.stop();
  }
  const worker = await Worker.start({ "agent.js": `${HEAD}export default agent((input) => input);`, "package.json": '{"type":"module"}' });
  assert.deepEqual((await worker.run({ a: 1 })).output, { a: 1 });
  await worker.stop();
});

test("agent.ts runs where Node does without its types, and else says what to do", async () => {
  const worker = await Worker.start({ "agent.ts": `${HEAD}export default agent(async (input: { a: number }) => ({ a: input.a + 1 }));` });
  if (process.features.typescript) {
    assert.deepEqual((await worker.run({ a: 1 })).output, { a: 2 });
  } else {
    assert.equal(worker.started.stage, "load");
    assert.match(worker.started.error, /^agent.ts runs as it is from Node 22.18 on, and this is Node [\d.]+; build it to agent.mjs/);
  }
  await worker.stop();
});

test("children and tools are asked for, side by side", async () => {
  const worker = await Worker.start(`${HEAD}export default agent(async (_, ctx) => {
    const [a, b] = await ctx.spawnAll([{ agent: "one", input: { n: 1 } }, { agent: "two", input: {}, timeout: "2m", priority: 5 }]);
    const refused = await ctx.spawn("no", {}).catch((error) => [error instanceof SpawnError, error.message]);
    const tool = await ctx.callTool("atlas.registry.list", { q: 1 });
    const skill = await ctx.callTool("shout", { t: "x" });
    const unknown = await ctx.callTool("other").catch((error) => error.message);
    return { a, b, refused, tool, skill, unknown };
  });`);
  const answer = (frame) => {
    if (frame.agent === "one") return { data: { ok: 1 } };
    if (frame.agent === "two") return { error: "failed" };
    if (frame.agent === "no") return { refused: "full" };
    return { data: { got: frame.input } };
  };
  worker.begin({}, { spawn_allowed: true, tools: ["atlas.registry.list"], skills: ["shout"] });
  for (let at = 0, asked = []; asked.length < 5; at = worker.frames.length) {
    await new Promise((done) => setTimeout(done, 5));
    const frames = worker.frames.slice(at).filter(({ type }) => ["spawn", "tool"].includes(type));
    asked.push(...frames);
    for (const frame of frames.reverse()) worker.send({ type: "spawned", call: frame.call, ...answer(frame) });
  }
  assert.deepEqual((await worker.ended).output, {
    a: { success: true, data: { ok: 1 }, error: "" },
    b: { success: false, data: {}, error: "failed" },
    refused: [true, "full"],
    tool: { got: { q: 1 } },
    skill: { got: { t: "x" } },
    unknown: 'the agent does not have the tool or skill "other"; list it in requires.skills of agent.yaml',
  });
  const [one, two, , , shout] = worker.frames.filter(({ type }) => ["spawn", "tool"].includes(type));
  assert.deepEqual([one.timeout, two.timeout, two.priority, shout.skill], [60, 120, 5, true]);
  await worker.stop();
});

test("the model of the job is called", async () => {
  const worker = await Worker.start(`${HEAD}export default agent(async (input, ctx) => ctx.model(input.q, { system: "brief", maxTokens: 9 }));`);
  worker.begin({ q: "why" }, { model: "m" });
  const asked = await worker.next("model");
  assert.deepEqual(asked.input, { prompt: "why", system: "brief", max_tokens: 9, temperature: null });
  worker.send({ type: "spawned", call: asked.call, data: { text: "so", input_tokens: 1, output_tokens: 2, model: "m-1" } });
  assert.deepEqual((await worker.ended).output, { text: "so", inputTokens: 1, outputTokens: 2, model: "m-1" });
  assert.equal((await worker.run({ q: "why" }, { no_model: "none is configured" })).error, "the job has no model: none is configured");
  await worker.stop();
});

test("calls of durable agents say what to add", async () => {
  const { end } = await once('export default agent(async (_, ctx) => { await ctx.sleep("1s"); });');
  assert.equal(end.error, 'ctx.sleep needs a durable agent; write "durable: true" into agent.yaml');
});

test("processes that the agent starts do not have the descriptors of the worker", async () => {
  const { end } = await once(`
    import { execFileSync } from "node:child_process";
    import { readlinkSync } from "node:fs";
    export default agent(() => {
      const own = [3, 4].map((fd) => readlinkSync("/proc/self/fd/" + fd));
      const listed = execFileSync("ls", ["-l", "/proc/self/fd"], { encoding: "utf8" });
      return { own, leaked: own.filter((pipe) => listed.includes(pipe)) };
    });`);
  assert.equal(end.output.own.length, 2);
  assert.deepEqual(end.output.leaked, []);
});

test("large frames and many small ones arrive whole", async () => {
  const worker = await Worker.start(`${HEAD}export default agent((input, ctx) => { for (let n = 0; n < 500; n += 1) ctx.progress(String(n)); return input; });`);
  const text = "é😀x".repeat(200_000);
  assert.equal((await worker.run({ text })).output.text, text);
  assert.deepEqual(worker.frames.filter(({ type }) => type === "progress").map((frame) => Number(frame.text)), Array.from({ length: 500 }, (_, n) => n));
  await worker.stop();
});

test("the end of the stream ends the process", async () => {
  const worker = await Worker.start(`${HEAD}export default agent(() => new Promise(() => {}));`);
  worker.begin({});
  worker.child.stdio[3].end();
  assert.equal(await worker.exited, 0);
});

const LIBRARY = `export default agent(async (_, ctx) => {
  const said = [await ctx.memory.read()];
  for (const call of [() => ctx.memory.append("a"), () => ctx.memory.of("user").write("b"), () => ctx.knowledge.store("x", { tags: ["t"] })]) {
    said.push(await call().catch((error) => error.message) ?? null);
  }
  said.push(await ctx.knowledge.search("q", { limit: 2 }), await ctx.knowledge.get("x"));
  return { said };
});`;

test("memory and knowledge are tools of the platform", async () => {
  const worker = await Worker.start(HEAD + LIBRARY, { requires: { memory: true, knowledge: { enabled: true } } });
  worker.begin({});
  const entry = { id: "e", content: "x" };
  const answers = [{ data: { text: "m" } }, { data: {} }, { data: {} }, { data: { entry } }, { data: { entries: [entry] } }, { data: { entry: null } }];
  let answered = 0;
  let end;
  worker.ended.then((frame) => (end = frame));
  while (end === undefined) {
    await new Promise((done) => setTimeout(done, 2));
    const asked = worker.frames.filter(({ type }) => type === "tool");
    for (; answered < asked.length; answered += 1) worker.send({ type: "spawned", call: asked[answered].call, ...answers[answered] });
  }
  const asked = worker.frames.filter(({ type }) => type === "tool").map(({ tool, input }) => [tool, input]);
  await worker.stop();
  assert.deepEqual(asked, [
    ["atlas.memory.read", {}],
    ["atlas.memory.append", { text: "a" }],
    ["atlas.memory.write", { text: "b", scope: "user" }],
    ["atlas.knowledge.store", { content: "x", domain: "general", tags: ["t"] }],
    ["atlas.knowledge.search", { query: "q", limit: 2 }],
    ["atlas.knowledge.get", { id: "x" }],
  ]);
  assert.deepEqual(end.output, { said: ["m", null, null, entry, [entry], null] });
});

test("memory and knowledge that the contract does not enable are empty", async () => {
  const { end } = await once(LIBRARY);
  const memory = "Memory not enabled — set requires.memory: true in contract";
  assert.deepEqual(end.output, { said: ["", memory, memory, "Knowledge not enabled — set requires.knowledge in contract", [], null] });
});

test("document bases are searched by a tool of the platform", async () => {
  const code = `export default agent(async (_, ctx) => ({
    found: await ctx.searchDocuments("handbook", "door", { topK: 2, metadata: { team: "ops" } }),
    denied: await ctx.searchDocuments("closed", "door").catch((error) => error.message),
  }));`;
  const worker = await Worker.start(HEAD + code, { requires: { documents: ["handbook"] } });
  worker.begin({});
  const hit = { source: "door.md", text: "A blue door.", score: 1.5 };
  const answers = [{ data: { hits: [hit] } }, { refused: "Agent not allowed" }];
  let answered = 0;
  let end;
  worker.ended.then((frame) => (end = frame));
  while (end === undefined) {
    await new Promise((done) => setTimeout(done, 2));
    const asked = worker.frames.filter(({ type }) => type === "tool");
    for (; answered < asked.length; answered += 1) worker.send({ type: "spawned", call: asked[answered].call, ...answers[answered] });
  }
  const asked = worker.frames.filter(({ type }) => type === "tool").map(({ tool, input }) => [tool, input]);
  await worker.stop();
  assert.deepEqual(asked, [
    ["atlas.documents.search", { base: "handbook", query: "door", top_k: 2, metadata: { team: "ops" } }],
    ["atlas.documents.search", { base: "closed", query: "door" }],
  ]);
  assert.deepEqual(end.output, { found: [hit], denied: "Agent not allowed" });
});
