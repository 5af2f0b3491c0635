// Frames between the agent's process and the worker: four bytes of length, most significant first, then JSON.

import { Socket } from "node:net";

const HEADER = 4;

/** Frames in and out, over two streams that belong to this process alone. */
export class Channel {
  #reads;
  #writes;
  #chunks = [];
  #bytes = 0;

  constructor(reads, writes) {
    this.#reads = reads;
    this.#writes = writes;
    // The worker is gone. The end of the other stream says so as well.
    this.#writes.on("error", () => {});
  }

  /** That of two descriptors. Sockets serve pipes as well: they wait in the loop, not in a thread. */
  static of(readFd, writeFd) {
    const reads = new Socket({ fd: readFd, readable: true, writable: false });
    return new Channel(reads, new Socket({ fd: writeFd, readable: false, writable: true }));
  }

  /** Calls `take` with each frame in order, and `ended` at the end of the stream. */
  listen(take, ended) {
    let isOver = false;
    const end = () => {
      if (!isOver) ended();
      isOver = true;
    };
    this.#reads.on("data", (chunk) => {
      this.#chunks.push(chunk);
      this.#bytes += chunk.length;
      for (let frame = this.#next(); frame !== undefined; frame = this.#next()) take(JSON.parse(frame));
    });
    this.#reads.on("end", end);
    this.#reads.on("error", end);
  }

  /** The text of the next complete frame. */
  #next() {
    if (this.#bytes < HEADER) return undefined;
    if (this.#chunks[0].length < HEADER) this.#join();
    const length = this.#chunks[0].readUInt32BE(0);
    if (this.#bytes < HEADER + length) return undefined;
    // Joined once the frame is complete, so that a long one is copied once.
    if (this.#chunks[0].length < HEADER + length) this.#join();
    const chunk = this.#chunks[0];
    const frame = chunk.toString("utf8", HEADER, HEADER + length);
    this.#bytes -= HEADER + length;
    if (chunk.length === HEADER + length) this.#chunks.shift();
    else this.#chunks[0] = chunk.subarray(HEADER + length);
    return frame;
  }

  #join() {
    this.#chunks = [Buffer.concat(this.#chunks, this.#bytes)];
  }

  /** Sends a frame. */
  send(frame) {
    this.sendText(JSON.stringify(frame));
  }

  /** Sends a frame that is JSON already. */
  sendText(text) {
    const length = Buffer.byteLength(text);
    const bytes = Buffer.allocUnsafe(HEADER + length);
    bytes.writeUInt32BE(length, 0);
    bytes.write(text, HEADER);
    this.#writes.write(bytes);
  }

  /** Completes once all frames are with the worker. */
  async drained() {
    await new Promise((done) => this.#writes.write("", () => done()));
  }
}
