// Uses all types of the package; checked by `tsc` where there is one, and never run.

import { Agent, CallError, DID_NOT_HAPPEN, ModelError, Parked, QuestionError, SpawnError, StepError, ToolError, agent } from "@atlas/agent";
import type { Context, Message, ModelAnswer, SpawnResult } from "@atlas/agent";

interface Input {
  name: string;
}

export default class Greeter extends Agent<Input, { greeting: string }> {
  #greeting = "";

  override async onStartup() {
    this.#greeting = String(this.contract.name);
  }

  async execute(input: Input, ctx: Context) {
    const sum: number = await ctx.step("add", (a, b) => a + b, { args: [1, 2], retry: { attempts: 3, delay: "2s" } });
    const key: string = await ctx.step("key", ({ key, signal }) => (signal.aborted ? "" : key), { effects: "pure" });
    const nothing: null = await ctx.step("nothing", () => {});
    const date: string = await ctx.step("date", () => new Date());
    const text: string = await ctx.step("charge", async (amount: number) => `paid ${amount}`, {
      args: [5],
      effects: "once",
      reconcile: async (amount) => (amount > 3 ? "paid" : DID_NOT_HAPPEN),
    });
    await ctx.sleep("1h 30m");
    await ctx.until(ctx.now());
    const message: Message | null = await ctx.receive("orders", { timeout: 30 });
    const child: SpawnResult<{ n: number }> = await ctx.spawn("other", { a: 1 }, { timeout: "1m" });
    const children = await ctx.spawnAll<{ n: number }>([{ agent: "a", input: {} }]);
    const answer: ModelAnswer = await ctx.model("why", { system: "brief", maxTokens: 10 });
    await ctx.memory.of("agent").append(await ctx.memory.read());
    const known: string[] = (await ctx.knowledge.search("door", { tags: ["a"] })).map(({ content }) => content);
    await ctx.knowledge.update("x", { content: known.join() });
    const yes: boolean = await ctx.ask("ok?", { kind: "confirm", signal: ctx.signal });
    if (!yes || (await ctx.version("v2"))) throw new CallError("no");
    ctx.progress(`${sum} ${key} ${nothing} ${date} ${text} ${message?.id} ${child.data.n} ${children.length} ${answer.text} ${ctx.uuid()}`);
    ctx.executionMetadata.model = answer.model;
    return { greeting: `${this.#greeting}, ${input.name} ${ctx.idempotencyKey} ${ctx.random()}` };
  }
}

export const other = agent<Input>(async (input, ctx) => {
  try {
    return await ctx.callTool("atlas.registry.list", { query: input.name });
  } catch (error) {
    if (error instanceof StepError) return { step: error.step, type: error.type };
    const known = [ToolError, SpawnError, ModelError, QuestionError, Parked];
    return { known: known.some((kind) => error instanceof kind) };
  }
});

export class Wrong extends Agent<Input, { greeting: string }> {
  // @ts-expect-error the greeting is missing
  async execute() {
    return {};
  }
}
