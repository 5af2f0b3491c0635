// Which controller is asked, how often, and what is made of hostile answers.

import assert from "node:assert/strict";
import { test } from "node:test";

import { pathOf } from "../src/calls.js";
import { fetchTransport } from "../src/fetch.js";
import * as atlas from "../src/node.js";
import { CLOSE, QUICK, answer, nobody, problem, serve } from "./fake.js";

// Both ways to send: that of Node, and that of browsers.
const TRANSPORTS = { node: undefined, fetch: fetchTransport };

process.env.ATLAS_CONFIG = "/nonexistent/config.toml";

/** Runs a test with each transport; the servers of a test are closed after it. */
function both(name, work) {
  for (const [how, transport] of Object.entries(TRANSPORTS)) {
    test(`${name} (${how})`, async (t) => {
      const start = async (said) => {
        const server = await serve(said);
        t.after(() => server.close());
        return server;
      };
      const client = (servers, options) => {
        const made = new atlas.Client({ servers, policy: QUICK, transport, ...options });
        t.after(() => made.close());
        return made;
      };
      await work({ start, client, how });
    });
  }
}

both("a submission has one key over all repeats", async ({ start, client }) => {
  // It is lost, refused by a controller without a leader, cut off within the answer, and then taken.
  const taken = answer({ id: "job-1" }, 201);
  const said = [CLOSE, problem("E4001", 503), [taken.subarray(0, -3), CLOSE], taken];
  const server = await start((_, number) => said[number]);
  const one = client(server.address);
  assert.equal(await one.submit("a", { x: 1 }), "job-1");
  const keys = new Set(server.requests.map(({ headers }) => headers["idempotency-key"]));
  assert.deepEqual([server.requests.length, keys.size], [4, 1]);
  server.answer = () => taken;
  await one.submit("a", { x: 1 });
  assert.ok(!keys.has(server.requests.at(-1).headers["idempotency-key"]));
  await one.submit("a", {}, { key: "mine" });
  assert.equal(server.requests.at(-1).headers["idempotency-key"], "mine");
});

both("another controller answers", async ({ start, client }) => {
  const alone = await start(() => problem("E4001", 503));
  const leader = await start(() => answer({ id: "job-1" }, 201));
  const one = client([await nobody(), alone.address, leader.address]);
  await one.submit("a");
  await one.submit("a");
  assert.deepEqual([alone.requests.length, leader.requests.length], [1, 2]);
});

both("pauses are at least what the server asks for", async ({ start, client }) => {
  const said = [problem("E3003", 429, { retry_after_s: 0.3 }), answer({}, 429, { "Retry-After": "1" }), answer({ id: "j" }, 201)];
  const server = await start((_, number) => said[number]);
  const begun = performance.now();
  await client(server.address).submit("a");
  assert.ok(performance.now() - begun >= 1290);
  server.answer = () => problem("E3003", 429, { retry_after_s: 100 });
  const failed = await client(server.address).submit("a", {}, { deadline: 50 }).catch((error) => error);
  assert.ok(failed instanceof atlas.Busy);
  assert.deepEqual([failed.retryAfter, failed.retryable, server.requests.length], [100, true, 4]);
});

both("repeats end", async ({ start, client }) => {
  const server = await start(() => problem("E4001", 503));
  await assert.rejects(client(server.address).submit("a"), atlas.Unavailable);
  assert.equal(server.requests.length, QUICK.rounds);
  const failed = await client(await nobody(), { deadline: 0.2 }).submit("a").catch((error) => error);
  assert.ok(failed instanceof atlas.Unreachable);
  assert.deepEqual([failed.code, failed.status], ["E4002", 0]);
});

both("what repeats do not change is told at once", async ({ start, client }) => {
  const place = { pointer: "/x", rule: "required", message: "is missing" };
  const server = await start(() => problem("E1102", 400, { hint: "look", errors: [place, 7] }));
  const one = client(server.address);
  const error = await one.submit("a").catch((error) => error);
  assert.ok(error instanceof atlas.Invalid);
  assert.deepEqual([error.code, error.status, error.hint, error.retryable], ["E1102", 400, "look", false]);
  assert.deepEqual(error.places, [place]);
  assert.equal(String(error), "E1102: told by E1102\n  /x: is missing\n  look");
  assert.equal(server.requests.length, 1);
  for (const [code, status, kind] of [["E3004", 409, "Conflict"], ["E1101", 404, "NotFound"], ["", 418, "Invalid"]]) {
    server.answer = () => problem(code, status);
    await assert.rejects(one.submit("a"), atlas[kind]);
  }
});

both("a connection that was closed meanwhile is no failure", async ({ start, client, how }) => {
  const server = await start(() => [answer({ version: "1" }), CLOSE]);
  const one = client(server.address);
  for (let round = 0; round < 5; round += 1) assert.deepEqual(await one.api.version(), { version: "1" });
  const kept = await start(() => answer({}));
  const other = client(kept.address);
  for (let round = 0; round < 5; round += 1) await other.api.version();
  // How many connections `fetch` keeps is its own business.
  if (how === "node") assert.equal(kept.open.size, 1);
});

both("answers that cannot be read are errors", async ({ start, client }) => {
  const bodies = ["{", "[".repeat(200_000), "\xff", '{"id": NaN}', "null", "[]", '{"id": 7}', '"x"', '{"__proto__": {"id": "job-1"}}'];
  for (const body of bodies) {
    const server = await start(() => answer(body));
    const failed = await client(server.address).submit("a").catch((error) => error);
    assert.ok(failed instanceof atlas.BadAnswer, body.slice(0, 20));
    assert.deepEqual([failed.code, failed.retryable], ["E4005", false]);
  }
});

both("answers that are no HTTP are errors", async ({ start, client }) => {
  const head = "HTTP/1.1 200 OK\r\n";
  const said = [
    "SSH-2.0-x\r\n\r\n",
    head + "x: y\r\n".repeat(20_000),
    `${head}Content-Length: -1\r\n\r\n`,
    `${head}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`,
    `${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
  ];
  for (const one of said) {
    const server = await start(() => [one, CLOSE]);
    await assert.rejects(client(server.address).submit("a"), atlas.AtlasError, one.slice(0, 40));
  }
});

both("answers are bounded", async ({ start, client }) => {
  const endless = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${`1000\r\n${" ".repeat(4096)}\r\n`.repeat(100)}`;
  const promised = `HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n${"x".repeat(100_000)}`;
  for (const said of [endless, promised]) {
    const server = await start(() => said);
    await assert.rejects(client(server.address, { answerMax: 50_000 }).submit("a"), atlas.BadAnswer);
  }
});

both("refusals may be anything", async ({ start, client }) => {
  const bodies = ["", "x", "[]", "null", "[".repeat(100_000), '{"code": 7, "detail": [], "errors": {}, "retry_after_s": "soon"}'];
  for (const body of bodies) {
    const server = await start(() => answer(body, 404, { "Retry-After": "-inf" }));
    const failed = await client(server.address).submit("a").catch((error) => error);
    assert.ok(failed instanceof atlas.NotFound);
    assert.deepEqual([failed.message, failed.code], ["the server answered 404", ""]);
  }
  const server = await start(() => problem("constructor", 404));
  await assert.rejects(client(server.address).submit("a"), atlas.NotFound);
});

both("a port that speaks TLS says so", async ({ start, client, how }) => {
  const server = await start(() => [Buffer.from([0x15, 3, 1, 0, 2, 2, 0x46]), CLOSE]);
  const failed = await client(server.address).api.version().catch((error) => error);
  assert.ok(failed instanceof atlas.Unreachable);
  // Browsers do not say why.
  if (how === "node") assert.equal(failed.code, "E4013");
});

both("redirects are not followed", async ({ start, client }) => {
  const server = await start(() => answer({}, 307, { Location: "http://127.0.0.1:1/" }));
  const failed = await client(server.address, { token: "hush" }).api.version().catch((error) => error);
  assert.ok(failed instanceof atlas.AtlasError);
  assert.deepEqual([failed.status, server.requests.length], [307, 1]);
});

both("warnings are shown", async ({ start, client }) => {
  const server = await start(() => answer({ id: "job-1" }, 201, { Warning: "299 atlas \"the member 'x' is ignored\"" }));
  const shown = [];
  const { warn } = console;
  console.warn = (text) => shown.push(text);
  await client(server.address).submit("a").finally(() => (console.warn = warn));
  assert.deepEqual(shown, ["Atlas: 299 atlas \"the member 'x' is ignored\""]);
});

both("unknown members are kept", async ({ start, client }) => {
  const said = { id: "job-1", status: "completed", of_tomorrow: { a: [1, null] } };
  const server = await start(() => answer(said));
  assert.deepEqual(await client(server.address).job("job-1"), said);
});

both("a signal ends a request", async ({ start, client }) => {
  const server = await start(() => "");
  const signal = AbortSignal.timeout(100);
  await assert.rejects(client(server.address).submit("a", {}, { signal }), { name: "TimeoutError" });
  await assert.rejects(client(server.address).submit("a", {}, { signal }), { name: "TimeoutError" });
});

test("names stay one part of a path", () => {
  assert.equal(pathOf("/api/jobs/{id}/wait", { id: "a/../b?c#d %ü" }), "/api/jobs/a%2F..%2Fb%3Fc%23d%20%25%C3%BC/wait");
  for (const id of ["", ".", ".."]) assert.throws(() => pathOf("/api/jobs/{id}", { id }), TypeError);
});

test("addresses", () => {
  const servers = (named) => new atlas.Client({ servers: named })._core.servers;
  assert.deepEqual(servers("a:1, https://b/x/ ,"), ["http://a:1", "https://b/x"]);
  assert.deepEqual(servers(["http://[::1]:7400"]), ["http://[::1]:7400"]);
  for (const wrong of [",", "ftp://a", "http://", "http://a:x", "http://u:p@a", "http://a?b"]) {
    assert.throws(() => servers(wrong), atlas.BadSettings, wrong);
  }
});

both("a namespace is sent where the interface takes one", async ({ start, client }) => {
  const server = await start(() => answer([]));
  const one = client(server.address, { namespace: "team-a" });
  await one.api.listJobs({ label: ["a=b", "c=d"], limit: 3 });
  await one.api.listNodes();
  await one.api.listJobs({ namespace: "other" });
  const targets = server.requests.map(({ target }) => target);
  const all = "/api/jobs?label=a%3Db&label=c%3Dd&limit=3&namespace=team-a";
  assert.deepEqual(targets, [all, "/api/nodes", "/api/jobs?namespace=other"]);
});
