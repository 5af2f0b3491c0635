// Lets agents import `@atlas/agent` from the worker, without a folder node_modules.

import * as nodeModule from "node:module";

const NAME = "@atlas/agent";
const OURS = new URL("./index.mjs", import.meta.url).href;

/** Installs it; called once, before the agent is loaded. */
export function install() {
  if (nodeModule.registerHooks !== undefined) {
    nodeModule.registerHooks({ resolve: (name, context, next) => (name === NAME ? { url: OURS, shortCircuit: true } : next(name, context)) });
  } else {
    // Node 20 runs hooks in a thread of their own.
    nodeModule.register(import.meta.url, { data: null });
  }
}

export async function resolve(name, context, next) {
  return name === NAME ? { url: OURS, shortCircuit: true } : next(name, context);
}
