// The client for Node, which finds the cluster as atlasctl does.

import { createWriteStream } from "node:fs";
import { readFile, rename, rm } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

import { BaseClient } from "./client.js";
import { find } from "./context.js";
import { tokenOf } from "./login.js";
import { nodeTransport } from "./node-transport.js";

export class Client extends BaseClient {
  constructor({ servers, token, context, namespace, caFile, transport, ...options } = {}) {
    const found = find({ servers, token, context, namespace, caFile });
    super({
      ...options,
      servers: found.servers,
      namespace: found.namespace,
      token: tokenOf(found),
      transport: transport ?? nodeTransport({ ca: found.ca }),
    });
  }

  async upload(bytes, options) {
    return super.upload(typeof bytes === "string" ? await readFile(bytes) : bytes, options);
  }

  /** Writes a backup of the cluster to a file, which is there once it is complete; returns its size. */
  async downloadBackup(path, options) {
    const partial = `${path}.part`;
    let size = 0;
    async function* counted(pieces) {
      for await (const piece of pieces) {
        size += piece.byteLength;
        yield piece;
      }
    }
    try {
      await pipeline(Readable.from(counted(this.api.snapshot(options))), createWriteStream(partial));
      await rename(partial, path);
    } catch (error) {
      await rm(partial, { force: true });
      throw error;
    }
    return size;
  }
}

export * from "./errors-public.js";
export { Bytes, Events } from "./core.js";
