"""TOML as the file of contexts has it. Python 3.10 reads none itself, and no version writes it."""

from __future__ import annotations

import re
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:
    tomllib = None  # type: ignore[assignment]

SPACE = " \t"
BARE = re.compile(r"[A-Za-z0-9_-]+")
NUMBER = re.compile(r"[+-]?(?:0|[1-9](?:_?[0-9])*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}


def loads(text: str) -> dict[str, Any]:
    """Reads a document; a ValueError says what is wrong."""
    if tomllib is not None:
        return tomllib.loads(text)
    return Reader(text).document()


def dumps(document: dict[str, Any]) -> str:
    """Writes tables of texts, numbers and words, which is all that the file of contexts has."""
    lines: list[str] = []
    _write(document, (), lines)
    return "\n".join(lines).strip("\n") + "\n"


def _write(table: dict[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    if path and (plain or not table):
        lines.append("\n[" + ".".join(_key(part) for part in path) + "]")
    lines.extend(f"{_key(key)} = {_value(value)}" for key, value in plain.items())
    for key, value in table.items():
        if isinstance(value, dict):
            _write(value, (*path, key), lines)


def _key(key: str) -> str:
    return key if BARE.fullmatch(key) else _text(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    raise ValueError(f"a value of the type {type(value).__name__} cannot be written")


def _text(text: str) -> str:
    def escaped(character: str) -> str:
        if character in '"\\':
            return "\\" + character
        return character if " " <= character != "\x7f" else f"\\u{ord(character):04x}"

    return '"' + "".join(escaped(character) for character in text) + '"'


class Reader:
    """Reads the part of TOML that has tables, texts, whole and other numbers, words and lists; no dates and no lists of tables."""

    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", "\n")
        self.at = 0

    def wrong(self, what: str) -> ValueError:
        line = self.text.count("\n", 0, self.at) + 1
        return ValueError(f"line {line}: {what}")

    def peek(self, length: int = 1) -> str:
        return self.text[self.at : self.at + length]

    def skip(self, characters: str = SPACE) -> None:
        while self.at < len(self.text):
            if self.text[self.at] in characters:
                self.at += 1
            elif "\n" in characters and self.text[self.at] == "#":
                self.at = self._line_end()
            else:
                return

    def _line_end(self) -> int:
        end = self.text.find("\n", self.at)
        return len(self.text) if end < 0 else end

    def expect(self, text: str) -> None:
        if self.peek(len(text)) != text:
            raise self.wrong(f"{text!r} is expected")
        self.at += len(text)

    def document(self) -> dict[str, Any]:
        root: dict[str, Any] = {}
        table = root
        while True:
            self.skip(SPACE + "\n")
            if self.at >= len(self.text):
                return root
            if self.peek(2) == "[[":
                raise self.wrong("a list of tables is not expected here")
            if self.peek() == "[":
                self.at += 1
                table = self._table(root, self._keys())
                self.expect("]")
            else:
                self._pair(table)
            self.skip()
            if self.peek() == "#":
                self.at = self._line_end()
            if self.at < len(self.text):
                self.expect("\n")

    def _table(self, table: dict[str, Any], keys: list[str]) -> dict[str, Any]:
        for key in keys:
            table = table.setdefault(key, {})
            if not isinstance(table, dict):
                raise self.wrong(f"{key!r} is no table")
        return table

    def _pair(self, table: dict[str, Any]) -> None:
        keys = self._keys()
        self.expect("=")
        self.skip()
        table = self._table(table, keys[:-1])
        if keys[-1] in table:
            raise self.wrong(f"{keys[-1]!r} is there twice")
        table[keys[-1]] = self._any(0)

    def _keys(self) -> list[str]:
        keys = []
        while True:
            self.skip()
            if self.peek() in ('"', "'"):
                keys.append(self._string())
            elif found := BARE.match(self.text, self.at):
                keys.append(found[0])
                self.at = found.end()
            else:
                raise self.wrong("a name is expected")
            self.skip()
            if self.peek() != ".":
                return keys
            self.at += 1

    def _any(self, depth: int) -> Any:
        if depth > 32:
            raise self.wrong("it is nested too deeply")
        if self.peek() in ('"', "'"):
            return self._string()
        if self.peek() == "[":
            return self._list(depth)
        if self.peek() == "{":
            return self._inline(depth)
        for word, value in (("true", True), ("false", False)):
            if self.peek(len(word)) == word:
                self.at += len(word)
                return value
        if found := NUMBER.match(self.text, self.at):
            self.at = found.end()
            number = found[0].replace("_", "")
            return float(number) if any(mark in number for mark in ".eE") else int(number)
        raise self.wrong("a value is expected")

    def _list(self, depth: int) -> list[Any]:
        items: list[Any] = []
        self.at += 1
        while True:
            self.skip(SPACE + "\n")
            if self.peek() == "]":
                self.at += 1
                return items
            items.append(self._any(depth + 1))
            self.skip(SPACE + "\n")
            if self.peek() != "]":
                self.expect(",")

    def _inline(self, depth: int) -> dict[str, Any]:
        table: dict[str, Any] = {}
        self.at += 1
        self.skip()
        while self.peek() != "}":
            keys = self._keys()
            self.expect("=")
            self.skip()
            self._table(table, keys[:-1])[keys[-1]] = self._any(depth + 1)
            self.skip()
            if self.peek() != "}":
                self.expect(",")
                self.skip()
        self.at += 1
        return table

    def _string(self) -> str:
        mark = self.peek(3) if self.peek(3) in ('"""', "'''") else self.peek()
        self.at += len(mark)
        if len(mark) == 3 and self.peek() == "\n":
            self.at += 1
        out = []
        while self.peek(len(mark)) != mark:
            if self.at >= len(self.text) or (len(mark) == 1 and self.peek() == "\n"):
                raise self.wrong("a text has no end")
            if self.peek() == "\\" and mark[0] == '"':
                out.append(self._escape(len(mark) == 3))
            else:
                out.append(self.peek())
                self.at += 1
        self.at += len(mark)
        # Up to two marks before those that end a text belong to it.
        while len(mark) == 3 and self.peek() == mark[0]:
            out.append(mark[0])
            self.at += 1
        return "".join(out)

    def _escape(self, is_long: bool) -> str:
        self.at += 1
        kind = self.peek()
        self.at += 1
        if kind in ESCAPES:
            return ESCAPES[kind]
        if kind in ("u", "U"):
            digits = self.peek(4 if kind == "u" else 8)
            self.at += len(digits)
            try:
                return chr(int(digits, 16))
            except (ValueError, OverflowError) as error:
                raise self.wrong("no such character") from error
        if is_long and kind in (" ", "\t", "\n"):
            while self.peek() in (" ", "\t", "\n"):
                self.at += 1
            return ""
        raise self.wrong(f"\\{kind} is no escape")
