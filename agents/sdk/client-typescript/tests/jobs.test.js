// Jobs: their retries, streams and questions; conversations.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as atlas from "../src/node.js";
import { Parser } from "../src/sse.js";
import { CLOSE, END, QUICK, STREAM, answer, change, chunk, job, problem, serve } from "./fake.js";

process.env.ATLAS_CONFIG = "/nonexistent/config.toml";

async function start(t, ...answers) {
  const servers = await Promise.all(answers.map(serve));
  const client = new atlas.Client({ servers: servers.map(({ address }) => address), policy: QUICK });
  t.after(() => {
    servers.forEach((server) => server.close());
    client.close();
  });
  return [client, ...servers];
}

test("a wait follows the retries to their end", async (t) => {
  const said = [job("running"), job("failed", { retried_by: "job-2", error: "once" })];
  const [client, server] = await start(t, (_, number) => said[number] ?? job("completed", { output_data: { x: [1] } }));
  assert.deepEqual(await client.wait("job-1"), { x: [1] });
  const paths = server.requests.map(({ path }) => path);
  assert.deepEqual(paths, ["/api/jobs/job-1/wait", "/api/jobs/job-1/wait", "/api/jobs/job-2/wait"]);
});

test("a failed job is an error with its code", async (t) => {
  const [client, server] = await start(t, () => job("failed", { error: "E3107: no room", error_code: "E3107", failure_kind: "agent" }));
  const error = await client.wait("job-1").catch((error) => error);
  assert.ok(error instanceof atlas.JobFailed);
  assert.deepEqual([error.code, error.jobId, error.failureKind], ["E3107", "job-1", "agent"]);
  assert.equal(String(error), "E3107: job-1 failed: no room");
  assert.equal((await client.waitJob("job-1")).error, "E3107: no room");
  server.answer = () => job("cancelled");
  await assert.rejects(client.wait("job-1"), atlas.JobCancelled);
});

test("a wait has a deadline also if the server does not wait", async (t) => {
  const [client, server] = await start(t, () => job("running"));
  const error = await client.wait("job-1", { deadline: 0.3 }).catch((error) => error);
  assert.ok(error instanceof atlas.WaitTimeout);
  assert.equal(error.jobId, "job-1");
  assert.ok(server.requests.length < 10);
});

test("retries that go round end", async (t) => {
  const [client] = await start(t, () => job("failed", { retried_by: "job-1" }));
  await assert.rejects(client.wait("job-1"), atlas.JobFailed);
});

test("questions are answered", async (t) => {
  const question = { id: "question-1", status: "open", prompt: "Which?", options: ["a", "b"] };
  const [client, server] = await start(t, ({ path, method }, number) => {
    if (path.startsWith("/api/questions")) return method === "POST" ? problem("E3041", 409) : answer(question);
    if (method === "POST") return answer({ id: "job-1" }, 201);
    return number > 3 ? job("completed", { output_data: 1 }) : job("running", { needs_answer: ["question-1", 7] });
  });
  const asked = [];
  const onQuestion = (shown) => {
    asked.push(shown);
    return "a";
  };
  assert.equal(await client.run("a", {}, { onQuestion }), 1);
  assert.deepEqual(asked, [question]);
  assert.equal(server.requests[0].json().questions, "wait");
  assert.deepEqual(server.requests[3].json(), { answer: "a" });
});

const seen = (events) => events.map(({ id, data }) => `${id} ${data.new_status}`);
const WHOLE = ["1.1 pending", "1 running", "2 completed"];

async function gathered(events) {
  const all = [];
  for await (const event of events) all.push(event);
  return all;
}

test("a stream goes on at another controller", async (t) => {
  // Within the third event.
  const dies = [STREAM + change("1.1", "pending") + change("1", "running") + chunk('event: job\nid: 2\ndata: {"new'), CLOSE];
  const goesOn = ({ headers }) => (headers["last-event-id"] === "1" ? [STREAM, change("2", "completed"), END] : problem("", 400));
  const [client, first, second] = await start(t, () => dies, goesOn);
  const events = await gathered(client.stream("job-1"));
  assert.deepEqual(seen(events), WHOLE);
  assert.equal(events[0].data.of_tomorrow, 1);
  assert.deepEqual([first.requests.length, second.requests.length], [1, 1]);
});

test("a stream that ends before its job goes on", async (t) => {
  // A controller that stops ends its streams as a job that has ended would.
  const parts = [change("1.1", "pending") + change("1", "running"), "", "", change("2", "completed")];
  let opened = 0;
  const [client] = await start(t, ({ path }) => (path === "/api/jobs/job-1" ? job("running") : [STREAM + parts[opened++], END]));
  assert.deepEqual(seen(await gathered(client.stream("job-1"))), WHOLE);
});

test("after the last event of a job nothing comes", async (t) => {
  const [client, server] = await start(t, ({ path }) => (path === "/api/jobs/job-1" ? job("completed") : [STREAM, END]));
  assert.deepEqual(await gathered(client.stream("job-1", { after: "2" })), []);
  assert.equal(server.requests[0].headers["last-event-id"], "2");
});

test("what would be repeated is not resumed", async (t) => {
  const [client, server] = await start(t, () => [STREAM, chunk('event: delta\ndata: {"text": "a"}\n\n'), CLOSE]);
  await assert.rejects(gathered(client.stream("job-1", { deltas: true })), atlas.Unreachable);
  assert.equal(server.requests.length, 1);
});

test("what is no stream is an error", async (t) => {
  const said = [problem("E3007", 410), answer({}), STREAM + chunk("data: {\n\n"), STREAM + "9\r\ndata: \xff\n\n\r\n"];
  for (const one of said) {
    const [client] = await start(t, () => (typeof one === "string" ? Buffer.from(one, "latin1") : one));
    await assert.rejects(gathered(client.stream("job-1")), (error) => error instanceof atlas.BadAnswer || error instanceof atlas.Gone);
  }
});

test("a stream that is left closes its connection", async (t) => {
  const [client, server] = await start(t, () => STREAM + change("1", "pending"));
  for await (const event of client.stream("job-1")) {
    assert.equal(event.id, "1");
    break;
  }
  const [socket] = server.open;
  if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
});

test("a stream can be closed before it begins", async (t) => {
  const [client] = await start(t, () => "");
  const events = client.stream("job-1");
  const next = events.next();
  await new Promise((resolve) => setTimeout(resolve, 50));
  await events.close();
  assert.deepEqual(await next, { done: true, value: undefined });
  const signal = AbortSignal.timeout(50);
  await assert.rejects(gathered(client.stream("job-1", { signal })), { name: "TimeoutError" });
  await assert.rejects(gathered(client.stream("job-1", { signal })), { name: "TimeoutError" });
});

test("events come in any pieces", () => {
  const text = ": alive\r\n\r\nid: 1\r\nevent: a\r\ndata: x\rdata:y\n\ndata\n\nretry: 9\nid: 2\ndata:  z ü\u2028w\n\n";
  const bytes = new TextEncoder().encode(text);
  const expected = ["1 a x\ny", " message ", "2 message  z ü\u2028w"];
  for (const size of [1, 2, 3, 7, bytes.length]) {
    const parser = new Parser();
    const found = [];
    for (let at = 0; at < bytes.length; at += size) found.push(...parser.push(bytes.subarray(at, at + size)));
    assert.deepEqual(found.map(({ id, kind, data }) => `${id} ${kind} ${data}`), expected);
  }
});

test("the deadline of a wait is told in few digits", () => {
  const told = (seconds) => new atlas.WaitTimeout("job-1", seconds).message;
  assert.equal(told(0.9926807030000049), "job-1 has not ended within 1 s; it goes on");
  assert.equal(told(2.5), "job-1 has not ended within 2.5 s; it goes on");
});

test("an event is bounded", () => {
  const bytes = (text) => new TextEncoder().encode(text);
  const short = new Parser(100);
  for (let round = 0; round < 50; round += 1) assert.equal(short.push(bytes(`data: ${"x".repeat(80)}\n\n`)).length, 1);
  for (const piece of ["data: x", "data: x\n"]) {
    const parser = new Parser(100);
    assert.throws(() => {
      for (let round = 0; round < 100; round += 1) parser.push(bytes(piece));
    }, atlas.BadAnswer);
  }
});

test("a message waits for its turn", async (t) => {
  const [client, server] = await start(t, ({ method }, number) => {
    if (method !== "POST") return job("completed", { output_data: { answer: "Belém", message: "the tower" } });
    return number === 0 ? problem("E1120", 429, { retry_after_s: 0 }) : answer({ id: "job-1" }, 201);
  });
  const reply = await client.send("clerk", "what first?", { conversation: "trip", input: { variables: { a: 1 } } });
  assert.deepEqual(reply, { text: "the tower", jobId: "job-1", output: { answer: "Belém", message: "the tower" } });
  const body = server.requests[0].json();
  assert.deepEqual(body.input, { variables: { a: 1 }, message: "what first?" });
  assert.equal(body.conversation, "trip");
});
