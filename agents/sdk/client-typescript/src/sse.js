// Server-sent events from pieces of bytes.

import { bad } from "./errors.js";

/** Most characters of one event. */
export const EVENT_MAX = 16 << 20;

/** Puts events together. */
export class Parser {
  constructor(most = EVENT_MAX) {
    this.most = most;
    this.decoder = new TextDecoder("utf-8", { fatal: true });
    this.rest = [];
    this.size = 0;
    this.afterCr = false;
    this.clear();
  }

  clear() {
    this.id = "";
    this.kind = "";
    this.data = [];
  }

  /** The events that end in this piece: id, kind and data of each. */
  push(bytes) {
    let piece;
    try {
      piece = this.decoder.decode(bytes, { stream: true });
    } catch (error) {
      throw bad("an event is no UTF-8", error);
    }
    if (this.afterCr && piece.startsWith("\n")) piece = piece.slice(1);
    else if (piece === "") return [];
    this.afterCr = piece.endsWith("\r");
    this.size += piece.length;
    this.rest.push(piece);
    const events = [];
    if (/[\r\n]/.test(piece)) {
      const lines = this.rest.join("").split(/\r\n|\n|\r/);
      this.rest = [lines.pop()];
      for (const line of lines) {
        if (line !== "") {
          this.take(line);
          continue;
        }
        if (this.data.length > 0) events.push({ id: this.id, kind: this.kind || "message", data: this.data.join("\n") });
        this.clear();
        this.size = this.rest[0].length;
      }
    }
    if (this.size > this.most) throw bad(`an event is longer than ${this.most} characters`);
    return events;
  }

  take(line) {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (name === "data") this.data.push(value);
    else if (name === "event") this.kind = value;
    else if (name === "id" && !value.includes("\0")) this.id = value;
  }
}
