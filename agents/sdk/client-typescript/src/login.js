// Tokens, and how that of a login is renewed: as atlasctl does it, and never by two programs at once.

import { spawn } from "node:child_process";

import * as contexts from "./context.js";
import { AtlasError, Denied, bad, text, unreachable } from "./errors.js";

/** Seconds before its end at which a token is renewed. */
const EARLY = 60;
/** Most bytes of an answer of an issuer, and the longest wait for one. */
const ANSWER_MAX = 1 << 20;
const ANSWER_MS = 30_000;
/** Longest wait for another program that renews the token. */
const LOCK_MS = 60_000;

const clock = () => Date.now() / 1000;

/** A function that returns the token, renewed if its end is near. */
export function tokenOf({ token, login }) {
  if (!login) return () => token;
  let [shown, due, renewing] = [token, login.endsAt - EARLY, undefined];
  const renew = async () => {
    [shown, due] = await renewed(login.context);
    return shown;
  };
  return () => {
    if (clock() < due) return shown;
    // Requests at the same time share one renewal.
    renewing ??= renew().finally(() => (renewing = undefined));
    return renewing;
  };
}

function failed(why) {
  return new Denied(`the login failed: ${why}`, { code: "E3207", hint: "log in again: atlasctl login", retryable: false });
}

/** The token of a context and when to look at it again. One program asks the issuer, the others find what it wrote. */
export async function renewed(name) {
  return locked(`${contexts.file()}.lock`, async () => {
    const config = contexts.read();
    const entry = contexts.member(contexts.member(config, "contexts"), name);
    const login = contexts.member(entry, "login");
    let token = text(entry, "token");
    if (token === "" || Object.keys(login).length === 0) throw failed("somebody has logged out");
    if (!Number.isFinite(login.expires_at)) return [token, Infinity];
    if (clock() + EARLY < login.expires_at) return [token, login.expires_at - EARLY];
    const refresh = text(login, "refresh_token");
    if (refresh === "") throw failed("the token has expired");
    const answer = await ask(login, refresh);
    const shown = login.shown === "id_token" ? "id_token" : "access_token";
    token = text(answer, shown);
    if (token === "") throw failed(`the issuer gave no ${shown.replace("_", " ")} with the renewed login`);
    const ends = endOf(token) ?? (Number.isFinite(answer.expires_in) ? clock() + answer.expires_in : undefined);
    entry.token = token;
    delete login.expires_at;
    if (ends !== undefined) login.expires_at = Math.floor(ends);
    // An issuer that gives no new refresh token keeps the one in use.
    if (text(answer, "refresh_token")) login.refresh_token = answer.refresh_token;
    contexts.write(config);
    // The issuer may give tokens for less than the time by which others are renewed early.
    return [token, ends === undefined ? Infinity : Math.max(ends - EARLY, Math.min(ends, clock() + EARLY))];
  });
}

async function ask(login, refresh) {
  const url = text(login, "token_url");
  if (!/^https?:\/\//.test(url)) throw failed(`"${url}" is not the address of an issuer`);
  const pairs = { grant_type: "refresh_token", refresh_token: refresh, client_id: text(login, "client_id") };
  let status;
  let body = "";
  try {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const headers = { accept: "application/json" };
    // The refresh token goes to the issuer and nowhere else.
    const answer = await fetch(url, { method: "POST", body: new URLSearchParams(pairs), headers, redirect: "error", signal });
    status = answer.status;
    const decoder = new TextDecoder();
    for await (const piece of answer.body ?? []) {
      body += decoder.decode(piece, { stream: true });
      if (body.length > ANSWER_MAX) throw bad("that of the issuer is too long");
    }
  } catch (error) {
    if (error instanceof AtlasError) throw error;
    throw unreachable(`could not reach the issuer at ${url}: ${error.cause?.message ?? error.message}`, error);
  }
  let value;
  try {
    value = JSON.parse(body);
  } catch {
    value = {};
  }
  if (status !== 200 || typeof value !== "object" || value === null) {
    const why = text(value, "error_description") || text(value, "error") || `the issuer answered ${status}`;
    throw failed(why.replaceAll(refresh, "[redacted:refresh_token]").slice(0, 500));
  }
  return value;
}

/** The end of a token as its own claim `exp` says. The cluster checks the token; this is only about when to renew it. */
export function endOf(token) {
  try {
    const { exp } = JSON.parse(Buffer.from(token.split(".")[1], "base64url").toString("utf8"));
    return Number.isFinite(exp) && exp >= 0 ? exp : undefined;
  } catch {
    return undefined;
  }
}

/** Works while no other program does: the lock is that of atlasctl, which only another program can take for Node. Without `flock`, the
 * work is done without it. */
async function locked(file, work) {
  const holder = spawn("flock", ["-x", file, "sh", "-c", "echo && exec cat"], { stdio: ["pipe", "pipe", "ignore"] });
  holder.stdin.on("error", () => {});
  const holds = new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(failed("another program renews the token for too long")), LOCK_MS);
    const done = (outcome) => () => {
      clearTimeout(timer);
      outcome();
    };
    holder.stdout.once("data", done(resolve));
    holder.once("error", done(resolve));
    holder.once("exit", done(() => reject(failed(`could not lock "${file}"`))));
  });
  try {
    await holds;
    return await work();
  } finally {
    holder.stdin.end();
    holder.kill();
  }
}
