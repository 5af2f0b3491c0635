// The calls of an agent that is not durable: asked, answered, and not recorded.

import { encode } from "./plain.mjs";

export class Calls {
  #channel;
  #number;
  #open = new Map(); // what waits for an answer, by the number of the call
  #last;

  /** `last` is the latest number that the process has used. */
  constructor(number, channel, last) {
    this.#number = number;
    this.#channel = channel;
    this.#last = last;
  }

  get last() {
    return this.#last;
  }

  ask(kind, members, signal) {
    signal?.throwIfAborted();
    this.#last += 1;
    const call = this.#last;
    const text = encode({ type: kind, number: this.#number, call, ...members }, `the call of ${kind}:`);
    return new Promise((resolve, reject) => {
      this.#channel.sendText(text);
      const left = () => {
        this.#open.delete(call);
        if (kind === "spawn") this.#channel.send({ type: "leave", number: this.#number, call });
        reject(signal.reason);
      };
      signal?.addEventListener("abort", left, { once: true });
      this.#open.set(call, (frame) => {
        signal?.removeEventListener("abort", left);
        resolve(frame);
      });
    });
  }

  answered(frame) {
    const resolve = this.#open.get(frame.call);
    this.#open.delete(frame.call);
    resolve?.(frame);
  }
}
