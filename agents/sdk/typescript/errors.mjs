// The errors that agents catch.
//
// An agent that was bundled has a copy of this file beside that of the host. The classes are those of the first copy, which is the
// host's, so that `instanceof` is true in both.

const SHARED = Symbol.for("atlas.agent.errors");

function define() {
  /** What an error of this package has in common. */
  class AtlasError extends Error {
    get name() {
      return this.constructor.name;
    }
  }

  /** A step of the program failed, in this attempt or in an earlier one. */
  class StepError extends AtlasError {
    constructor(step, type, text) {
      super(`step "${step}" failed: ${text ? `${type}: ${text}` : type}`);
      /** The name of the step. */
      this.step = step;
      /** The class of the error that the step threw, such as `TypeError`. */
      this.type = type;
      this.text = text;
    }
  }

  /** No job was made: the agent has no permission, the depth limit is reached, or there is no worker. */
  class SpawnError extends AtlasError {}

  /** A tool or a skill was refused, or failed. */
  class ToolError extends AtlasError {}

  /** There is no model, or its call failed. The text begins with the code of the error, if it has one. */
  class ModelError extends AtlasError {}

  /** A question could not be asked. */
  class QuestionError extends AtlasError {}

  /** A call that the agent cannot make, or that was made wrongly. */
  class CallError extends AtlasError {}

  /** A child or a tool failed; agents get it as a value. */
  class Failed extends AtlasError {}

  /** The reason of `ctx.signal` once the job waits without its process. */
  class Parked extends AtlasError {
    constructor() {
      super("the job waits without its process; its program begins again, with its record, when the wait has ended");
    }
  }

  return { StepError, SpawnError, ToolError, ModelError, QuestionError, CallError, Failed, Parked };
}

globalThis[SHARED] ??= define();

export const { StepError, SpawnError, ToolError, ModelError, QuestionError, CallError, Failed, Parked } = globalThis[SHARED];

/** What an error says: its text, or its class where there is none. */
export function textOf(error) {
  try {
    if (error instanceof Error) return (error.message || error.name || "Error").toWellFormed();
    return (typeof error === "object" ? JSON.stringify(error) : String(error)).toWellFormed();
  } catch {
    return "an error without a text";
  }
}

/** The class of an error. */
export function typeOf(error) {
  try {
    return String(error instanceof Error ? error.name || error.constructor.name : typeof error).toWellFormed();
  } catch {
    return "Error";
  }
}

/** True of a text that means nothing without the class of its error: none, a number, a single word of punctuation. */
export function isBare(text) {
  return ["undefined", "null", "true", "false", "NaN"].includes(text) || !/\p{L}\p{L}/u.test(text);
}

/** The same as `textOf`, after the class where the text alone is unclear. */
export function described(error) {
  const text = textOf(error);
  const type = typeOf(error);
  return isBare(text) && text !== type ? `${type}: ${text}` : text;
}
