// Submits jobs and follows two until a file is there; tells what it saw as JSON.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";

import { Client } from "../../../agents/sdk/client-typescript/src/node.js";

const SUBMITTERS = 4;
const [servers, gate] = process.argv.slice(2);
const atlas = new Client({ servers, deadline: 120 });
const jobs = {};
const streams = [[], []];
let next = 0;

const tell = (what) => process.stderr.write(`${JSON.stringify(what)}\n`);

async function submit() {
  while (!existsSync(gate)) {
    const number = next++;
    const job = await atlas.submit("echo", { number });
    assert.deepEqual((await atlas.wait(job)).input, { number });
    jobs[number] = job;
    const count = Object.keys(jobs).length;
    if (count % 10 === 0) tell({ jobs: count });
  }
}

async function follow(seen) {
  const job = await atlas.submit("gated", { gate });
  for await (const { id, data } of atlas.stream(job)) {
    seen.push([id, data.new_status]);
    if (data.new_status === "running") tell({ follows: id });
  }
  assert.deepEqual(await atlas.wait(job), { passed: true });
}

await Promise.all([...streams.map(follow), ...Array.from({ length: SUBMITTERS }, submit)]);
atlas.close();
tell({ done: { jobs, streams } });
