// Which cluster, with which token and which certificates: as atlasctl finds them.

import { closeSync, fstatSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import path from "node:path";

import { addresses } from "./addresses.js";
import { BadSettings, isObject } from "./errors.js";
import { parse, stringify } from "./toml.js";

const SERVER_DEFAULT = "http://127.0.0.1:7400";
/** Most bytes of the file of contexts. */
const FILE_MAX = 1 << 20;

/** Arguments first, then variables, then the context: an address before the name of a context. */
export function find({ servers, token, context, namespace, caFile }, env = process.env) {
  let named = servers || (context ? undefined : env.ATLAS_SERVER || undefined);
  let entry = {};
  let name;
  if (named === undefined) {
    const config = read(env);
    name = context || env.ATLAS_CONTEXT || config.current;
    if (name !== undefined) {
      entry = member(member(config, "contexts"), String(name));
      if (typeof entry.server !== "string") {
        throw new BadSettings(`no such context: "${name}"`, { code: "E0124", hint: "list them: atlasctl context list" });
      }
      named = entry.server;
    }
  }
  const own = (token || env.ATLAS_TOKEN || undefined)?.trim();
  const login = member(entry, "login");
  const isRenewed = own === undefined && login.refresh_token && Number.isFinite(login.expires_at);
  const shown = own ?? entry.token;
  // Without the text: it may be most of a token.
  if (shown !== undefined && !/^[\x21-\x7e]+$/.test(shown)) throw new BadSettings("the token has characters that no token has");
  const file = caFile || env.ATLAS_CA_FILE || entry.ca_file;
  return {
    servers: addresses(named ?? SERVER_DEFAULT),
    token: shown,
    login: isRenewed ? { context: String(name), endsAt: login.expires_at } : undefined,
    namespace: namespace || env.ATLAS_NAMESPACE || undefined,
    ca: file ? certificates(file) : entry.ca,
  };
}

function certificates(file) {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new BadSettings(`the certificates to trust cannot be read: ${error.message}`, { cause: error });
  }
}

/** Where atlasctl keeps its contexts. */
export function file(env = process.env) {
  if (env.ATLAS_CONFIG) return env.ATLAS_CONFIG;
  const folder = env.XDG_CONFIG_HOME || (env.HOME && path.join(env.HOME, ".config"));
  return folder && path.join(folder, "atlas/config.toml");
}

/** The file of contexts; empty if there is none. */
export function read(env = process.env) {
  const place = file(env);
  if (!place) return {};
  let data;
  try {
    const opened = openSync(place, "r");
    try {
      const { mode, size } = fstatSync(opened);
      if (mode & 0o077 && process.platform !== "win32") {
        const why = `"${place}" can be read or changed by other users (mode 0${(mode & 0o777).toString(8)})`;
        throw new BadSettings(why, { code: "E0122", hint: `restrict it: chmod 600 ${place}` });
      }
      if (size > FILE_MAX) throw new BadSettings(`"${place}" is longer than ${FILE_MAX} bytes`, { code: "E0123" });
      data = readFileSync(opened, "utf8");
    } finally {
      closeSync(opened);
    }
  } catch (error) {
    if (error.code === "ENOENT") return {};
    throw error instanceof BadSettings ? error : new BadSettings(`could not read "${place}": ${error.message}`, { cause: error });
  }
  try {
    return parse(data);
  } catch (error) {
    throw new BadSettings(`"${place}" cannot be used: ${error.message}`, { code: "E0123", cause: error });
  }
}

/** Writes the file of contexts, completely or not at all, for the owner alone. */
export function write(config, env = process.env) {
  const place = file(env);
  const partial = `${place}.${process.pid}.new`;
  try {
    const opened = openSync(partial, "wx", 0o600);
    try {
      writeSync(opened, stringify(config));
      fsyncSync(opened);
    } finally {
      closeSync(opened);
    }
    renameSync(partial, place);
  } catch (error) {
    rmSync(partial, { force: true });
    throw new BadSettings(`could not write "${place}": ${error.message}`, { cause: error });
  }
}

/** A member that is a table; empty if it is none. */
export function member(value, name) {
  const found = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  return isObject(found) ? found : {};
}
