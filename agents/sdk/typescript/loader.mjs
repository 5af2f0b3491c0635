// Finds the agent in the folder of its package.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import { described, typeOf } from "./errors.mjs";

// A file that was built counts before its source.
const FILES = ["agent.mjs", "agent.js", "agent.ts"];

/** The folder has nothing that can run; the text says why. */
export class NoImplementation extends Error {}

/** The agent could not be loaded. The text begins with its place, and the cause is what was thrown. */
export class ImportError extends Error {}

/** The agent of a folder: an object with `execute`, and perhaps with `onStartup` and `onShutdown`. */
export async function load(directory) {
  const file = FILES.find((name) => existsSync(join(directory, name)));
  if (file === undefined) throw new NoImplementation(`the package has none of ${FILES.join(", ")}`);
  if (file === "agent.ts" && !process.features.typescript) {
    const needs = "agent.ts runs as it is from Node 22.18 on";
    throw new NoImplementation(`${needs}, and this is Node ${process.versions.node}; build it to agent.mjs (npm run build) and deploy that`);
  }
  const path = join(directory, file);
  // Places in errors are those of the source if the build has left a map.
  if (readFileSync(path, "utf8").includes("\n//# sourceMappingURL=")) process.setSourceMapsEnabled(true);
  let module;
  try {
    module = await import(pathToFileURL(path).href);
  } catch (error) {
    throw new ImportError(importError(directory, file, error), { cause: error });
  }
  return agentOf(module, file);
}

function agentOf(module, file) {
  // What a CommonJS module exports is its default; a compiled one has its own default in there.
  const given = module.default?.default ?? module.default;
  const isClass = typeof given === "function" && typeof given.prototype?.execute === "function";
  if (isClass) return new given();
  if (typeof given?.execute === "function") return given;
  if (typeof given === "function") return { execute: given };
  const is = given === undefined ? "it has no default export" : `its default export is ${given === null ? "null" : `a ${typeof given}`}`;
  throw new NoImplementation(`${file} exports no agent (${is}); write export default class extends Agent, or export default agent(…)`);
}

/** File, line and error, of the innermost place in the package. */
function importError(directory, file, error) {
  const type = typeOf(error);
  const text = described(error);
  const said = text.startsWith(type) ? text : `${type}: ${text}`;
  const place = (error instanceof SyntaxError ? syntaxPlace(directory, file, error) : undefined) ?? placeIn(directory, error) ?? file;
  const isCommon = file === "agent.js" && error instanceof SyntaxError && /import statement|Unexpected token 'export'/.test(text);
  const hint = isCommon ? '; name it agent.mjs, or add a package.json with "type": "module"' : "";
  return `${place}: ${said}${hint}`;
}

/** `agent.mjs, line 3` of the innermost line of the package on the stack. */
function placeIn(directory, error) {
  const line = lineIn(directory, String(error?.stack ?? ""));
  return line && `${line.file}, line ${line.line}`;
}

/** Node says where a syntax error is only if it ends because of it. */
function syntaxPlace(directory, file, error) {
  const first = /^(?:file:\/\/)?(\/.+):(\d+)\n/.exec(String(error.stack));
  if (first !== null && first[1].startsWith(`${directory}/`)) return `${relative(directory, first[1])}, line ${first[2]}`;
  const looked = spawnSync(process.execPath, ["--check", join(directory, file)], { encoding: "utf8", timeout: 5000, env: {} });
  const found = /^(?:file:\/\/)?(\/.+):(\d+)$/m.exec(looked.stderr ?? "");
  return found === null ? undefined : `${relative(directory, found[1])}, line ${found[2]}`;
}

/** The first place of a stack that is in a folder, and not in its folder node_modules. */
export function lineIn(directory, stack) {
  for (const row of stack.split("\n").slice(1)) {
    const found = /\(?((?:file:\/\/)?\/[^()]*):(\d+):\d+\)?$/.exec(row);
    if (found === null) continue;
    const path = found[1].startsWith("file:") ? fileURLToPath(found[1]) : found[1];
    const file = relative(directory, path);
    if (!file.startsWith("..") && !file.startsWith("node_modules/")) return { file, line: Number(found[2]) };
  }
  return undefined;
}
