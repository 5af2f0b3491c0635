// Twenty steps in JavaScript. Each leaves lines in a file outside of Atlas, and lets itself be killed at its boundaries.

import { randomBytes } from "node:crypto";
import { appendFileSync, existsSync, readFileSync, renameSync } from "node:fs";

import { agent, DID_NOT_HAPPEN } from "@atlas/agent";

const EFFECTS = ["pure", "once", "idempotent"];

const pause = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

export default agent(async (given, ctx) => {
  const run = randomBytes(8).toString("hex");
  const place = `${given.dir}/${given.family}`;
  const mark = (word, n, key = "-") => appendFileSync(`${place}.trace`, `${run} ${ctx.jobId} ${word} ${n} ${key}\n`);

  // Meets the fault that is planned for this boundary.
  const gate = (n, boundary) => {
    const path = `${place}.${n}.${boundary}`;
    let how;
    try {
      how = readFileSync(path, "utf8");
      renameSync(path, `${path}.met`);
    } catch {
      return;
    }
    if (how === "agent") process.kill(process.pid, "SIGKILL");
    while (how === "wait" && existsSync(`${path}.met`)) pause(10);
  };

  const work = async (n) => {
    mark("enter", n);
    gate(n, "enter");
    mark("effect", n, ctx.idempotencyKey);
    gate(n, "leave");
    return n * 7;
  };

  const look = (n) => {
    mark("looked", n);
    return readFileSync(`${place}.trace`, "utf8").includes(` effect ${n} `) ? n * 7 : DID_NOT_HAPPEN;
  };

  const step = async (n, total) => {
    mark("before", n);
    gate(n, "before");
    const effects = EFFECTS[n % 3];
    const reconcile = effects === "once" && n % 2 === 0 ? look : undefined;
    const got = await ctx.step(`s${n}`, work, { args: [n, total], effects, reconcile });
    mark("after", n);
    gate(n, "after");
    return got ?? n * 7;
  };

  let total = 0;
  const steps = async (first, last) => {
    for (let n = first; n <= last; n += 1) total += await step(n, total);
  };

  const wait = async (name, begin) => {
    mark("waits", name);
    const got = await begin();
    mark("went", name);
    return got;
  };

  mark("starts", 0);
  await steps(1, 3);
  await wait("sleep", () => ctx.sleep(0.1));
  await steps(4, 6);
  const message = await wait("receive", () => ctx.receive("go"));
  await steps(7, 9);
  const child = await wait("spawn", () => ctx.spawn("durable-child", { dir: given.dir, family: given.family }));
  await steps(10, 12);
  const said = await wait("ask", () => ctx.ask("Go on?", { options: ["yes", "no"] }));
  await steps(13, 15);
  await wait("pause", () => ctx.sleep(Number(given.pause)));
  await steps(16, 16);
  const before = total;
  for (const got of await Promise.all([17, 18, 19].map((n) => step(n, before)))) total += got;
  await steps(20, 20);
  mark("ends", 0);
  return { total, message: message.body, child: child.data, said };
});
