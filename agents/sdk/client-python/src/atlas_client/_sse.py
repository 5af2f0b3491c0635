"""Server-sent events from pieces of bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._http import bad

#: Most bytes of one event.
EVENT_MAX = 16 << 20


@dataclass(frozen=True)
class Event:
    """One event of a stream."""

    #: Where a stream goes on after this event; empty for events that are not sent again.
    id: str
    #: What it is: `job`, `line`, `delta`, `gap`, `reset`, or another word.
    kind: str
    #: Its JSON, with members that this client does not know.
    data: Any


class Parser:
    """Puts events together."""

    def __init__(self, most: int = EVENT_MAX) -> None:
        self.most = most
        self._rest: list[bytes] = []
        self._after_cr = False
        self._size = 0
        self._clear()

    def _clear(self) -> None:
        self._id, self._kind = "", ""
        self._data: list[str] = []

    def push(self, piece: bytes) -> list[tuple[str, str, str]]:
        """The events that end in this piece: id, kind and data of each."""
        if self._after_cr and piece.startswith(b"\n"):
            piece = piece[1:]
        self._after_cr = piece.endswith(b"\r")
        self._size += len(piece)
        self._rest.append(piece)
        events = []
        if b"\n" in piece or b"\r" in piece:
            # Only line ends of the standard count: others may be in a text.
            lines = b"".join(self._rest).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
            self._rest = [lines.pop()]
            for line in lines:
                if line:
                    self._take(line)
                    continue
                if self._data:
                    events.append((self._id, self._kind or "message", "\n".join(self._data)))
                self._clear()
                self._size = len(self._rest[0])
        if self._size > self.most:
            raise bad(f"an event is longer than {self.most} bytes")
        return events

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        text = value[1:] if value.startswith(b" ") else value
        try:
            decoded = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise bad("an event is no UTF-8") from error
        if name == b"data":
            self._data.append(decoded)
        elif name == b"event":
            self._kind = decoded
        elif name == b"id" and "\0" not in decoded:
            self._id = decoded
