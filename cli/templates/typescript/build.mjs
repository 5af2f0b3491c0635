// Makes agent.mjs of agent.ts, with the packages that it imports. The worker has @atlas/agent itself.

import { build } from "esbuild";

await build({
  entryPoints: ["agent.ts"],
  outfile: "agent.mjs",
  bundle: true,
  platform: "node",
  target: "node20",
  format: "esm",
  external: ["@atlas/agent"],
  // Lines in errors are those of agent.ts.
  sourcemap: "inline",
  sourcesContent: false,
  // For packages that are not modules yet.
  banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
});
