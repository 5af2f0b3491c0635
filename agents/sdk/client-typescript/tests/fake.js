// A server that says what a test wants, byte by byte.

import net from "node:net";

/** The connection closes after an answer that ends with it. */
export const CLOSE = Symbol("close");

/** Answers each request with what a function returns for it and its number, from 0 on: a text or bytes, or a list of them. */
export async function serve(answer) {
  const server = { requests: [], open: new Set(), answer };
  const listener = net.createServer((socket) => {
    server.open.add(socket);
    socket.on("error", () => {});
    let received = Buffer.alloc(0);
    socket.on("data", (piece) => {
      received = Buffer.concat([received, piece]);
      for (;;) {
        const found = read(received);
        if (!found) return;
        received = found.rest;
        server.requests.push(found.request);
        for (const part of [server.answer(found.request, server.requests.length - 1)].flat()) {
          if (part === CLOSE) socket.end();
          else socket.write(part);
        }
      }
    });
  });
  await new Promise((resolve) => listener.listen(0, "127.0.0.1", resolve));
  server.address = `http://127.0.0.1:${listener.address().port}`;
  server.close = () => {
    listener.close();
    for (const socket of server.open) socket.destroy();
  };
  return server;
}

function read(received) {
  const end = received.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const [first, ...lines] = received.subarray(0, end).toString("latin1").split("\r\n");
  const [method, target] = first.split(" ");
  const headers = {};
  for (const line of lines) headers[line.slice(0, line.indexOf(":")).toLowerCase()] = line.slice(line.indexOf(":") + 1).trim();
  const length = Number(headers["content-length"] ?? 0);
  if (received.length < end + 4 + length) return undefined;
  const body = received.subarray(end + 4, end + 4 + length).toString();
  const request = { method, target, path: target.split("?")[0], headers, body, json: () => JSON.parse(body) };
  return { request, rest: received.subarray(end + 4 + length) };
}

/** A whole answer. */
export function answer(value, status = 200, headers = {}) {
  const body = typeof value === "string" ? Buffer.from(value, "latin1") : Buffer.from(JSON.stringify(value));
  const lines = [`HTTP/1.1 ${status} Said`, `Content-Length: ${body.length}`];
  for (const [name, text] of Object.entries(headers)) lines.push(`${name}: ${text}`);
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`), body]);
}

/** A refusal. */
export function problem(code, status, members = {}) {
  return answer({ code, status, detail: `told by ${code}`, ...members }, status);
}

export function chunk(text) {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

export const STREAM = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
export const END = "0\r\n\r\n";

/** One frame of the stream of a job. */
export function change(id, status) {
  return chunk(`event: job\nid: ${id}\ndata: ${JSON.stringify({ new_status: status, of_tomorrow: 1 })}\n\n`);
}

export function job(status, members = {}) {
  return answer({ id: "job-1", status, output_data: null, ...members });
}

/** An address where nobody listens. */
export async function nobody() {
  const server = await serve(() => "");
  server.close();
  return server.address;
}

/** Repeats without pauses that a test would feel. */
export const QUICK = { rounds: 4, pause: 0.001, pauseMax: 0.01 };
