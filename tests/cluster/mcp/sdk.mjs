// Lists and calls every tool of a server with one of the official SDKs for TypeScript; prints one JSON document a line.
//
// Usage: node sdk.mjs PACKAGE URL, in a folder with the package. PACKAGE is @modelcontextprotocol/sdk or @modelcontextprotocol/client.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [, , name, url] = process.argv;
const from = createRequire(`${process.cwd()}/`);
const load = (place) => import(pathToFileURL(from.resolve(place)).href);

const { Client, StreamableHTTPClientTransport } =
  name === "@modelcontextprotocol/sdk"
    ? { ...(await load(`${name}/client/index.js`)), ...(await load(`${name}/client/streamableHttp.js`)) }
    : await load(name);

const client = new Client({ name: "strict", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const { tools } = await client.listTools();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name).sort() }));
for (const tool of tools.filter((tool) => process.argv.includes(tool.title ?? tool.name))) {
  const said = [];
  const options = { onprogress: (progress) => said.push(progress.message) };
  const wanted = tool.inputSchema.required ?? [];
  const given = Object.fromEntries(wanted.map((key) => [key, tool.inputSchema.properties[key].type === "object" ? {} : [1]]));
  const params = { name: tool.name, arguments: given };
  // The order of the arguments differs between the two.
  const result = await (name.endsWith("/sdk") ? client.callTool(params, undefined, options) : client.callTool(params, options));
  console.log(JSON.stringify({ tool: tool.title ?? tool.name, failed: result.isError ?? false, said }));
}
await client.close();
