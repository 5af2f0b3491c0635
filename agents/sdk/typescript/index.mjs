// What agents import: `import { Agent, agent } from "@atlas/agent"`.
//
// These are modules that Node runs as they are, with types in `index.d.ts`. TypeScript sources would need a compiler in each build of
// the worker, or a compiled copy beside them that somebody has to keep fresh; the text of this package is short enough to check its
// types by a test.

export { CallError, ModelError, Parked, QuestionError, SpawnError, StepError, ToolError } from "./errors.mjs";
export { DID_NOT_HAPPEN } from "./record.mjs";

// One agent a process. The host puts it here, so that it serves a bundled copy of this file too.
const SLOT = Symbol.for("atlas.agent.slot");
const MADE = Symbol.for("atlas.agent.made");

/** The base class of an agent. One object serves the jobs of its process, one after the other. */
export class Agent {
  /** The contract: `agent.yaml`. */
  get contract() {
    return slot().contract;
  }

  /** The context of the job whose code this is. */
  get context() {
    return slot().context();
  }

  /** Runs once, before the first job. */
  async onStartup() {}

  /** Runs once, at the end of the process, for at most five seconds. */
  async onShutdown() {}

  /** Runs one job. */
  async execute() {
    throw new Error(`${this.constructor.name} has no method execute`);
  }
}

/** An agent that is a function: `export default agent(async (input, ctx) => …)`. */
export function agent(execute) {
  if (typeof execute !== "function") throw new TypeError(`agent(…) takes a function, and not ${execute === null ? "null" : typeof execute}`);
  return { [MADE]: true, execute };
}

function slot() {
  const slot = globalThis[SLOT];
  if (slot === undefined) throw new Error("a worker gives an agent its contract and context; none runs this code");
  return slot;
}
