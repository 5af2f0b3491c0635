"""What makes two calls the same: kind, name, and a digest of the arguments. Equal calls are numbered by the run."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import hashlib
import json

# The worker cuts it for people, after it has removed secrets.
GIVEN_CHARS_MAX = 1_000


def canonical(value) -> str:
    """JSON with sorted members; what JSON does not have is replaced by something that is equal in each attempt."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), default=_stand_in)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(_with_texts_as_keys(value, 0), sort_keys=True, separators=(",", ":"), default=_stand_in)


def digest(text: str) -> str:
    """16 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def given(args, kwargs) -> str:
    """The arguments as people read them, for messages about a difference."""
    parts = [_short(value) for value in args] + [f"{name}={_short(value)}" for name, value in kwargs.items()]
    text = ", ".join(parts)
    return text if len(text) <= GIVEN_CHARS_MAX else text[: GIVEN_CHARS_MAX - 1] + "…"


def _short(value) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=_stand_in)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= GIVEN_CHARS_MAX else text[:GIVEN_CHARS_MAX]


def _stand_in(value):
    """For values that JSON does not have. Objects that say nothing of themselves count by their type, because their address changes."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return str(value)
    if isinstance(value, (set, frozenset)):
        return sorted(canonical(item) for item in value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"bytes": hashlib.sha256(bytes(value)).hexdigest()}
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        try:
            return dump(mode="json")
        except Exception:
            pass  # not that of pydantic
    if type(value).__str__ is not object.__str__ and type(value).__module__ in ("decimal", "fractions", "uuid", "pathlib", "ipaddress"):
        return str(value)
    kind = value if isinstance(value, type) or callable(value) and hasattr(value, "__qualname__") else type(value)
    return {"type": f"{kind.__module__}.{kind.__qualname__}"}


def _with_texts_as_keys(value, depth):
    if depth > 64:
        return {"type": type(value).__name__}
    if isinstance(value, dict):
        return {key if isinstance(key, str) else repr(key): _with_texts_as_keys(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_texts_as_keys(item, depth + 1) for item in value]
    return value
