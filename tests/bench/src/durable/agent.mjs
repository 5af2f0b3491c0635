// Measured by `atlas-bench durable`: steps that do nothing, and how long each took in µs.

import { agent } from "@atlas/agent";

const nothing = async () => null;

export default agent(async ({ steps }, ctx) => {
  const took = [];
  for (let n = 0; n < steps; n += 1) {
    const begun = performance.now();
    await ctx.step("nothing", nothing);
    took.push(Math.round((performance.now() - begun) * 1e3));
  }
  return { took };
});
