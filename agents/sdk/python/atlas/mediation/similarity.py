"""How similar two names of fields are: the same scores as those of the platform."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

# Longer names, in bytes of UTF-8, are similar only if they are equal: the comparison costs the product of both lengths.
_BYTES_MAX = 512

_WORD = re.compile("[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")

_ABBREVIATIONS = {
    "cfg": "config",
    "cnt": "count",
    "ctx": "context",
    "desc": "description",
    "dst": "destination",
    "err": "error",
    "fmt": "format",
    "idx": "index",
    "len": "length",
    "msg": "message",
    "num": "number",
    "req": "request",
    "res": "result",
    "resp": "response",
    "src": "source",
    "txt": "text",
    "val": "value",
}


def tokenize(name: str) -> list[str]:
    """The words of a name, in lower case, with abbreviations written out: `userMsg` has the words `user` and `message`."""
    # An underscore matches no word, and so it separates words like every other character.
    words = [word.lower() for word in _WORD.findall(name)]
    return [_ABBREVIATIONS.get(word, word) for word in words]


def similarity(source: str, target: str) -> float:
    """From 0 to 1. Not symmetric: shared words count relative to the words of the target."""
    if source == target:
        return 1.0
    if max(_bytes(source), _bytes(target)) > _BYTES_MAX:
        return 0.0
    source_words, target_words = tokenize(source), tokenize(target)
    if source.lower() == target.lower() or source_words == target_words:
        return 0.95
    common = len(set(source_words) & set(target_words))
    if common:
        return min(0.9, 0.5 + 0.4 * common / len(set(target_words)))
    # Without `autojunk=False`, frequent characters of long names would not count.
    return SequenceMatcher(None, source.lower(), target.lower(), autojunk=False).ratio()


def _bytes(name: str) -> int:
    # JSON can contain halves of surrogate pairs, which UTF-8 refuses otherwise.
    return len(name.encode("utf-8", "surrogatepass"))
