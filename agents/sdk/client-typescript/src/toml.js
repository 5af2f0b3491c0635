// TOML as the file of contexts has it: tables, texts, numbers, words and lists; no dates and no lists of tables.

const BARE = /[A-Za-z0-9_-]+/y;
const NUMBER = /[+-]?(?:0|[1-9](?:_?[0-9])*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const ESCAPES = { b: "\b", t: "\t", n: "\n", f: "\f", r: "\r", '"': '"', "\\": "\\" };
const SPACE = " \t";

/** Reads a document; the error says what is wrong. */
export function parse(text) {
  return new Reader(text).document();
}

/** Writes tables of texts, numbers, words and lists. */
export function stringify(document) {
  const lines = [];
  write(document, [], lines);
  return `${lines.join("\n").replace(/^\n+/, "")}\n`;
}

function write(table, path, lines) {
  const isTable = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  const entries = Object.entries(table);
  const plain = entries.filter(([, value]) => !isTable(value));
  if (path.length > 0 && (plain.length > 0 || entries.length === 0)) lines.push(`\n[${path.map(key).join(".")}]`);
  for (const [name, value] of plain) lines.push(`${key(name)} = ${valueOf(value)}`);
  for (const [name, value] of entries) if (isTable(value)) write(value, [...path, name], lines);
}

function key(name) {
  return /^[A-Za-z0-9_-]+$/.test(name) ? name : quoted(name);
}

function valueOf(value) {
  if (typeof value === "string") return quoted(value);
  if (Array.isArray(value)) return `[${value.map(valueOf).join(", ")}]`;
  if (typeof value === "boolean" || Number.isFinite(value)) return String(value);
  throw new Error(`a value of the type ${typeof value} cannot be written`);
}

function quoted(text) {
  const escaped = (character) =>
    character === '"' || character === "\\" ? `\\${character}` : `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  // eslint-disable-next-line no-control-regex
  return `"${text.replace(/["\\\u0000-\u001f\u007f]/g, escaped)}"`;
}

class Reader {
  constructor(text) {
    this.text = text.replaceAll("\r\n", "\n");
    this.at = 0;
  }

  wrong(what) {
    return new Error(`line ${this.text.slice(0, this.at).split("\n").length}: ${what}`);
  }

  peek(length = 1) {
    return this.text.slice(this.at, this.at + length);
  }

  skip(characters = SPACE) {
    while (this.at < this.text.length) {
      if (characters.includes(this.text[this.at])) this.at += 1;
      else if (characters.includes("\n") && this.text[this.at] === "#") this.skipLine();
      else return;
    }
  }

  skipLine() {
    const end = this.text.indexOf("\n", this.at);
    this.at = end < 0 ? this.text.length : end;
  }

  expect(text) {
    if (this.peek(text.length) !== text) throw this.wrong(`${JSON.stringify(text)} is expected`);
    this.at += text.length;
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0];
    if (found !== undefined) this.at += found.length;
    return found;
  }

  document() {
    const root = table();
    let current = root;
    for (;;) {
      this.skip(`${SPACE}\n`);
      if (this.at >= this.text.length) return root;
      if (this.peek(2) === "[[") throw this.wrong("a list of tables is not expected here");
      if (this.peek() === "[") {
        this.at += 1;
        current = this.table(root, this.keys());
        this.expect("]");
      } else {
        this.pair(current, 0);
      }
      this.skip();
      if (this.peek() === "#") this.skipLine();
      if (this.at < this.text.length) this.expect("\n");
    }
  }

  table(from, keys) {
    let current = from;
    for (const name of keys) {
      if (!Object.hasOwn(current, name)) define(current, name, table());
      current = current[name];
      if (typeof current !== "object" || Array.isArray(current)) throw this.wrong(`"${name}" is no table`);
    }
    return current;
  }

  pair(into, depth) {
    const keys = this.keys();
    this.expect("=");
    this.skip();
    const last = keys.pop();
    const target = this.table(into, keys);
    if (Object.hasOwn(target, last)) throw this.wrong(`"${last}" is there twice`);
    define(target, last, this.value(depth));
  }

  keys() {
    const keys = [];
    for (;;) {
      this.skip();
      const name = this.peek() === '"' || this.peek() === "'" ? this.string() : this.match(BARE);
      if (name === undefined) throw this.wrong("a name is expected");
      keys.push(name);
      this.skip();
      if (this.peek() !== ".") return keys;
      this.at += 1;
    }
  }

  value(depth) {
    if (depth > 32) throw this.wrong("it is nested too deeply");
    const mark = this.peek();
    if (mark === '"' || mark === "'") return this.string();
    if (mark === "[") return this.list(depth);
    if (mark === "{") return this.inline(depth);
    for (const word of ["true", "false"]) {
      if (this.peek(word.length) === word) {
        this.at += word.length;
        return word === "true";
      }
    }
    const number = this.match(NUMBER);
    if (number === undefined) throw this.wrong("a value is expected");
    return Number(number.replaceAll("_", ""));
  }

  list(depth) {
    const items = [];
    this.at += 1;
    for (;;) {
      this.skip(`${SPACE}\n`);
      if (this.peek() === "]") break;
      items.push(this.value(depth + 1));
      this.skip(`${SPACE}\n`);
      if (this.peek() !== "]") this.expect(",");
    }
    this.at += 1;
    return items;
  }

  inline(depth) {
    const found = table();
    this.at += 1;
    this.skip();
    while (this.peek() !== "}") {
      this.pair(found, depth + 1);
      this.skip();
      if (this.peek() === "}") break;
      this.expect(",");
      this.skip();
    }
    this.at += 1;
    return found;
  }

  string() {
    const mark = ['"""', "'''"].includes(this.peek(3)) ? this.peek(3) : this.peek();
    const isLong = mark.length === 3;
    this.at += mark.length;
    if (isLong && this.peek() === "\n") this.at += 1;
    let out = "";
    while (this.peek(mark.length) !== mark) {
      if (this.at >= this.text.length || (!isLong && this.peek() === "\n")) throw this.wrong("a text has no end");
      if (this.peek() === "\\" && mark[0] === '"') {
        out += this.escape(isLong);
      } else {
        out += this.peek();
        this.at += 1;
      }
    }
    this.at += mark.length;
    // Up to two marks before those that end a text belong to it.
    while (isLong && this.peek() === mark[0]) {
      out += mark[0];
      this.at += 1;
    }
    return out;
  }

  escape(isLong) {
    const kind = this.text[this.at + 1] ?? "";
    this.at += 2;
    if (Object.hasOwn(ESCAPES, kind)) return ESCAPES[kind];
    if (kind === "u" || kind === "U") {
      const digits = this.peek(kind === "u" ? 4 : 8);
      this.at += digits.length;
      const code = /^[0-9a-fA-F]+$/.test(digits) ? Number.parseInt(digits, 16) : Infinity;
      if (code > 0x10ffff) throw this.wrong("no such character");
      return String.fromCodePoint(code);
    }
    if (isLong && /\s/.test(kind)) {
      while (this.at < this.text.length && /[ \t\n]/.test(this.peek())) this.at += 1;
      return "";
    }
    throw this.wrong(`\\${kind} is no escape`);
  }
}

// Without a prototype, so that no name in a file means anything else.
function table() {
  return Object.create(null);
}

function define(into, name, value) {
  into[name] = value;
}
