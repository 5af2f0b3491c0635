// What an agent prints. Lines of stdout and stderr are read by the worker; what has a level of its own is a frame.

import { format } from "node:util";

const LEVELS = { debug: "debug", warn: "warning" };

/** Gives `console.debug` and `console.warn` their levels. */
export function install(channel) {
  for (const [method, level] of Object.entries(LEVELS)) {
    console[method] = (...values) => channel.send({ type: "log", level, text: format(...values).toWellFormed() });
  }
}

/** Completes once all that was printed is in the pipes, so that the lines of a job come before its end. */
export async function flushed() {
  const streams = [process.stdout, process.stderr].filter((stream) => stream.writableLength > 0 && !stream.destroyed);
  await Promise.all(streams.map((stream) => new Promise((done) => stream.write("", () => done()))));
}
