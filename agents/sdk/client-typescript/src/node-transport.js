// Requests in Node, which can trust certificates of a file.

import http from "node:http";
import https from "node:https";

import { AtlasError, Unreachable, bad, unreachable } from "./errors.js";

/** Milliseconds to connect. */
const CONNECT = 5000;

/** A function that sends requests; `ca` are the certificates to trust alone. */
export function nodeTransport({ ca } = {}) {
  const plain = new http.Agent({ keepAlive: true });
  const tls = new https.Agent({ keepAlive: true, ca, minVersion: "TLSv1.2" });
  const agent = (url) => (url.startsWith("https:") ? tls : plain);
  const transport = async (request) => {
    for (;;) {
      try {
        return await once(request, agent(request.url));
      } catch (error) {
        // A controller may have closed a connection that nobody used; that says nothing about the controller.
        if (!error.wasReused) throw error;
      }
    }
  };
  transport.close = () => {
    plain.destroy();
    tls.destroy();
  };
  return transport;
}

function once({ url, method, headers, body, signal }, agent) {
  return new Promise((resolve, reject) => {
    const library = url.startsWith("https:") ? https : http;
    const all = { ...headers, "user-agent": "atlas-client-js/0.1.0" };
    if (body !== undefined || method !== "GET") all["content-length"] = String(Buffer.byteLength(body ?? ""));
    const request = library.request(url, { agent, method, headers: all });
    let answered;
    // Not by the option of the request: it would end a connection that another request has by now.
    const given = () => (answered ?? request).destroy(new Error("it was given up"));
    signal.addEventListener("abort", given, { once: true });
    const timer = setTimeout(() => request.destroy(new Error("no connection in time")), CONNECT);
    request.on("socket", (socket) => {
      const connected = () => clearTimeout(timer);
      if (!socket.connecting) connected();
      else socket.once(url.startsWith("https:") ? "secureConnect" : "connect", connected);
    });
    request.on("response", (answer) => {
      answered = answer;
      clearTimeout(timer);
      // What reads the body hears of it as well.
      answer.on("error", () => {});
      answer.once("close", () => signal.removeEventListener("abort", given));
      const header = (name) => {
        const value = answer.headers[name];
        return Array.isArray(value) ? value.join(", ") : value;
      };
      resolve({ status: answer.statusCode, header, body: read(answer) });
    });
    request.on("error", (error) => {
      clearTimeout(timer);
      // One that came with the answer is told by its body.
      if (answered) return;
      signal.removeEventListener("abort", given);
      const failed = explained(error, url);
      failed.wasReused = request.reusedSocket && failed.code === "E4002" && !signal.aborted;
      reject(failed);
    });
    // Nobody asked for another protocol, and no connection is left open for it.
    request.on("upgrade", (_, socket) => {
      clearTimeout(timer);
      socket.destroy();
      reject(bad("it changes the protocol"));
    });
    request.end(body);
  });
}

async function* read(answer) {
  try {
    yield* answer;
  } catch (error) {
    throw error instanceof AtlasError ? error : unreachable(`the connection ended within the answer: ${error.message}`, error);
  }
}

function explained(error, url) {
  const code = String(error.code ?? "");
  const where = new URL(url).host;
  // How a port that speaks TLS refuses a request without it.
  if (error.rawPacket?.[0] === 0x15 && error.rawPacket[1] === 3) {
    const options = { code: "E4013", retryable: false, hint: "the address begins with https://", cause: error };
    return new Unreachable(`${where} speaks TLS`, options);
  }
  if (code.startsWith("HPE_")) return bad(`it is no HTTP: ${error.message}`, error);
  if (/CERT|_SSL_|^EPROTO$|^UNABLE_TO_|^ERR_TLS/.test(code)) {
    return new Unreachable(`TLS with ${where} failed: ${error.message}`, {
      code: "E4013",
      retryable: false,
      hint: "give the certificate of the cluster, and one of the names in that of the controller",
      cause: error,
    });
  }
  return unreachable(`could not reach Atlas at ${where}: ${error.message || code}`, error);
}
