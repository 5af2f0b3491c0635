// The client for browsers, at the page's own origin unless it is told another one.

import { addresses } from "./addresses.js";
import { BaseClient } from "./client.js";
import { fetchTransport } from "./fetch.js";

export class Client extends BaseClient {
  constructor({ servers = globalThis.location?.origin ?? "", token, ...options } = {}) {
    super({ ...options, servers: addresses(servers), token: () => token, transport: options.transport ?? fetchTransport });
  }
}

export * from "./errors-public.js";
export { Bytes, Events } from "./core.js";
