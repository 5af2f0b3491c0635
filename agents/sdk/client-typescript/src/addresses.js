// Addresses of controllers.

import { BadSettings } from "./errors.js";

/** Reads addresses: with or without a scheme, as a list or with commas between them. */
export function addresses(named) {
  const texts = (typeof named === "string" ? named.split(",") : [...named]).map((text) => text.trim());
  const found = texts.filter((text) => text !== "").map(address);
  if (found.length === 0) throw new BadSettings("no address of a controller is given");
  return found;
}

function address(text) {
  let url;
  try {
    url = new URL(text.includes("://") ? text : `http://${text}`);
  } catch (error) {
    throw new BadSettings(`"${text}" is not an address`, { cause: error });
  }
  if (!["http:", "https:"].includes(url.protocol) || url.search || url.hash) {
    throw new BadSettings(`"${text}" is not the address of a controller, such as https://10.0.0.1:7400`);
  }
  if (url.username || url.password) throw new BadSettings("an address has no user and no password here: give a token");
  return url.origin + url.pathname.replace(/\/+$/, "");
}
