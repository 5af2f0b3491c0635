// Calls one function of a tool: run.mts FILE FUNCTION PARAMETERS ARGUMENTS.

import { appendFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [path, name, parameters, text] = process.argv.slice(2);
const module = await import(pathToFileURL(path).href);
const given = JSON.parse(text);
const value = await module[name](...JSON.parse(parameters).map((parameter: string) => given[parameter]));
if (value !== undefined && value !== null) {
  const result = typeof value === "object" ? JSON.stringify(value, null, 2) : String(value);
  appendFileSync(process.env.LLM_OUTPUT!, result);
}
