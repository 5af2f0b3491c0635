// Shared memory and knowledge, as the context gives them to agents. The controller keeps both; a call is one of a tool of the platform.

import { ToolError } from "./errors.mjs";

const NAMESPACE = "namespace";

/** A text that agents share: without a scope that of the contract. `call` gives `undefined` if the contract does not enable it. */
export class SharedMemory {
  #call;
  #scope;

  constructor(call, scope) {
    this.#call = call;
    this.#scope = scope;
  }

  get scope() {
    return this.#scope ?? NAMESPACE;
  }

  of(scope) {
    return new SharedMemory(this.#call, String(scope));
  }

  async read(options) {
    return (await this.#call("atlas.memory.read", this.#scoped({}), options))?.text ?? "";
  }

  async append(text, options) {
    enabled(await this.#call("atlas.memory.append", this.#scoped({ text: String(text) }), options));
  }

  async write(text, options) {
    enabled(await this.#call("atlas.memory.write", this.#scoped({ text: String(text) }), options));
  }

  #scoped(input) {
    return this.#scope === undefined ? input : { ...input, scope: this.#scope };
  }
}

/** Entries that agents share. */
export class Knowledge {
  #call;

  constructor(call) {
    this.#call = call;
  }

  async search(query, { domain, tags, limit = 10, ...options } = {}) {
    return (await this.#call("atlas.knowledge.search", { query: String(query), limit, domain, tags }, options))?.entries ?? [];
  }

  async get(id, options) {
    return (await this.#call("atlas.knowledge.get", { id: String(id) }, options))?.entry ?? null;
  }

  async store(content, { domain = "general", tags, metadata, ...options } = {}) {
    return known(await this.#call("atlas.knowledge.store", { content: String(content), domain, tags, metadata }, options)).entry;
  }

  async update(id, { content, tags, metadata, ...options } = {}) {
    return known(await this.#call("atlas.knowledge.update", { id: String(id), content, tags, metadata }, options)).entry ?? null;
  }
}

function enabled(answer) {
  if (answer === undefined) throw new ToolError("Memory not enabled — set requires.memory: true in contract");
}

function known(answer) {
  if (answer === undefined) throw new ToolError("Knowledge not enabled — set requires.knowledge in contract");
  return answer;
}
