import { Agent } from "@atlas/agent";
import type { Input, Output } from "./types.ts";

export default class Greeter extends Agent<Input, Output> {
  async execute(input: Input): Promise<Output> {
    return { greeting: `Hello, ${input.name}` };
  }
}
