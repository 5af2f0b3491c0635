// Which cluster, token and certificates are used; logins and their renewal; the file of contexts.

import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { beforeEach, test } from "node:test";

import { find } from "../src/context.js";
import { endOf } from "../src/login.js";
import * as atlas from "../src/node.js";
import { parse, stringify } from "../src/toml.js";
import { answer, serve } from "./fake.js";

let folder;
let file;

beforeEach((t) => {
  for (const name of Object.keys(process.env)) if (name.startsWith("ATLAS_")) delete process.env[name];
  folder = mkdtempSync(path.join(tmpdir(), "atlas-client-"));
  file = path.join(folder, "config.toml");
  process.env.ATLAS_CONFIG = file;
  t.after?.(() => rmSync(folder, { recursive: true }));
});

function write(text, mode = 0o600) {
  writeFileSync(file, text);
  chmodSync(file, mode);
}

const CONTEXTS = `
current = "work"
[contexts.work]
server = "http://w1:1,http://w2:2"
token = "token-of-work"
ca = '''
-----BEGIN'''
[contexts."ho.me"]
server = "http://h:1"
`;

function shown(given = {}) {
  const { servers, token, ca, namespace } = find(given);
  return [servers.join(), token, ca?.toString(), namespace];
}

test("arguments come before variables and those before the context", () => {
  assert.deepEqual(shown(), ["http://127.0.0.1:7400", undefined, undefined, undefined]);
  write(CONTEXTS);
  const work = ["http://w1:1,http://w2:2", "token-of-work", "-----BEGIN", undefined];
  assert.deepEqual(shown(), work);
  assert.deepEqual(shown({ context: "ho.me" }), ["http://h:1", undefined, undefined, undefined]);
  // The token of a context goes to the addresses of the context alone.
  assert.deepEqual(shown({ servers: "s:1" }), ["http://s:1", undefined, undefined, undefined]);
  process.env.ATLAS_SERVER = "e:1";
  assert.equal(shown()[0], "http://e:1");
  assert.deepEqual(shown({ context: "work" }), work);
  Object.assign(process.env, { ATLAS_TOKEN: "token-of-e", ATLAS_CA_FILE: file, ATLAS_NAMESPACE: "team" });
  assert.deepEqual(shown(), ["http://e:1", "token-of-e", CONTEXTS, "team"]);
  assert.equal(shown({ token: "mine" })[1], "mine");
  Object.assign(process.env, { ATLAS_SERVER: "", ATLAS_CONTEXT: "ho.me" });
  assert.equal(shown()[0], "http://h:1");
});

test("what cannot be used is told", () => {
  for (const [text, mode, why] of [
    [CONTEXTS, 0o644, "can be read or changed by other users (mode 0644)"],
    ["[contexts.", 0o600, "cannot be used"],
    ["current = 'gone'", 0o600, 'no such context: "gone"'],
    ["current = 'gone'\ncontexts = 7", 0o600, 'no such context: "gone"'],
    ["current = '__proto__'\n[contexts]", 0o600, 'no such context: "__proto__"'],
  ]) {
    write(text, mode);
    assert.throws(() => new atlas.Client(), (error) => error instanceof atlas.BadSettings && error.message.includes(why), why);
  }
  assert.throws(() => new atlas.Client({ servers: "a", token: "hu\nsh" }), (error) => !error.message.includes("hu"));
});

const token = (claims) => `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.c2ln`;

function login(server, issuer, ends) {
  write(`current = "work"
[contexts.work]
server = "${server}"
token = "old"
[contexts.work.login]
issuer = "${issuer}"
client_id = "atlasctl"
token_url = "${issuer}/token"
shown = "id_token"
expires_at = ${Math.floor(ends)}
refresh_token = "refresh-1"
[contexts.other]
server = "http://other:1"
`);
}

const now = () => Date.now() / 1000;

test("a token is renewed once by all and kept", async (t) => {
  const fresh = token({ exp: now() + 3600 });
  const given = { access_token: "opaque", id_token: fresh, refresh_token: "refresh-2", expires_in: 60 };
  const [server, issuer] = [await serve(() => answer({})), await serve(() => answer(given))];
  login(server.address, issuer.address, now() + 30);
  const clients = [1, 2, 3].map(() => new atlas.Client());
  t.after(() => [server, issuer, ...clients].forEach((one) => one.close()));
  await Promise.all(clients.flatMap((client) => [client.api.version(), client.api.version()]));
  assert.deepEqual(server.requests.map(({ headers }) => headers.authorization), Array(6).fill(`Bearer ${fresh}`));
  assert.equal(issuer.requests.length, 1);
  const sent = Object.fromEntries(new URLSearchParams(issuer.requests[0].body));
  assert.deepEqual(sent, { grant_type: "refresh_token", refresh_token: "refresh-1", client_id: "atlasctl" });
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const { contexts } = parse(readFileSync(file, "utf8"));
  assert.deepEqual({ ...contexts.other }, { server: "http://other:1" });
  assert.deepEqual([contexts.work.token, contexts.work.login.refresh_token], [fresh, "refresh-2"]);
});

test("a token that has time left is used as it is", async (t) => {
  const server = await serve(() => answer({}));
  login(server.address, "http://127.0.0.1:1", now() + 3600);
  const client = new atlas.Client();
  t.after(() => [server, client].forEach((one) => one.close()));
  await client.api.version();
  assert.equal(server.requests[0].headers.authorization, "Bearer old");
  assert.deepEqual(readdirSync(folder), ["config.toml"]);
});

test("an issuer that refuses is told without secrets", async (t) => {
  const server = await serve(() => answer({}));
  t.after(() => server.close());
  for (const said of [answer({ error: "invalid_grant: refresh-1" }, 400), answer([]), answer({}), answer({}, 302, { Location: "http://x/" })]) {
    const issuer = await serve(() => said);
    login(server.address, issuer.address, 0);
    const client = new atlas.Client({ deadline: 0.3 });
    const failed = await client.api.version().catch((error) => error);
    assert.ok(failed instanceof atlas.Denied || failed instanceof atlas.Unreachable, String(failed));
    assert.ok(!String(failed).includes("refresh-1"), String(failed));
    [issuer, client].forEach((one) => one.close());
  }
  assert.equal(server.requests.length, 0);
});

test("tokens say when they end", () => {
  assert.equal(endOf(token({ exp: 1000 })), 1000);
  for (const other of [token({ exp: "1000" }), token(null), "opaque", "a.b.c", "", ".."]) assert.equal(endOf(other), undefined);
});

const WRITTEN = `# written by hand
current = "a\\u00e9\\n\\"b" # so
hints = false
[contexts]
[contexts.'x y']
server="s" \t
token = """
first \\
   # second
third"""
n = [1, -2.5e3, "]", [ ], # and
 true]
z = { a.b = 1, "c" = 'raw\\n' }
literal = '''it's'''
`;

test("what people write is read", () => {
  const expected = {
    current: 'aé\n"b',
    hints: false,
    contexts: {
      "x y": {
        server: "s",
        token: "first # second\nthird",
        n: [1, -2500, "]", [], true],
        z: { a: { b: 1 }, c: "raw\\n" },
        literal: "it's",
      },
    },
  };
  assert.deepEqual(JSON.parse(JSON.stringify(parse(WRITTEN))), expected);
});

test("what is written is read", () => {
  const document = { a: '\x00\x1f\x7f"\\é😀\n', n: -7, w: true, t: { "x.y": { k: "v", l: ["a"] }, empty: {} } };
  assert.deepEqual(JSON.parse(JSON.stringify(parse(stringify(document)))), document);
});

test("what is wrong names its line", () => {
  for (const text of ["\na", "\na = ", "\na = 'x", "\n[a", "\na = 1\na = 2", "\n[[a]]", '\na = "\\q"', "\na = 1 2", "\na.b.", `\na = [${"[".repeat(50)}`]) {
    assert.throws(() => parse(text), /^Error: line [23]: /, text);
  }
});
