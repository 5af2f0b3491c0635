"""One exchange of HTTP/1.1 over a stream of bytes. Nothing here opens a connection."""

from __future__ import annotations

from typing import Any, Protocol

from ._errors import BadAnswer, Unreachable

#: Most bytes of the status line with all headers, and of the line before a chunk.
HEAD_MAX = 64 << 10
LINE_MAX = 4096
#: Interim answers (1xx) before the answer itself.
INTERIM_MAX = 8
READ = 64 << 10
#: How a port that speaks TLS refuses a request without it.
ALERT = b"\x15\x03"


class Connection(Protocol):
    """A connection to a controller. `until` is a time of the clock of the connection; None waits for ever."""

    used: int

    async def read(self, until: float | None) -> bytes: ...

    async def write(self, data: bytes, until: float | None) -> None: ...

    def close(self) -> None: ...


def request_bytes(method: str, target: str, headers: dict[str, str], body: bytes | None) -> bytes:
    """A request as it is sent."""
    lines = [f"{method} {target} HTTP/1.1"]
    for name, value in headers.items():
        if any(character in value for character in "\r\n\0"):
            raise ValueError(f"the header {name} has a line end in its value")
        lines.append(f"{name}: {value}")
    if body is not None or method not in ("GET", "HEAD"):
        lines.append(f"Content-Length: {len(body or b'')}")
    head = "\r\n".join(lines) + "\r\n\r\n"
    try:
        return head.encode("latin-1") + (body or b"")
    except UnicodeEncodeError as error:
        raise ValueError("a header has characters that headers cannot have") from error


class Answer:
    """An answer, whose body is read piece by piece."""

    def __init__(self, connection: Connection, until: float | None) -> None:
        self.connection = connection
        self.until = until
        #: The controller that gave it.
        self.server: Any = None
        self.status = 0
        self.headers: dict[str, str] = {}
        self.warnings: list[str] = []
        self.is_reusable = False
        self.is_over = False
        self._buffer = b""
        self._left = 0
        self._form = "close"
        #: Whether any byte of the answer has arrived.
        self.began = False

    async def _more(self, what: str) -> None:
        data = await self.connection.read(self.until)
        if not data and self._buffer.startswith(ALERT):
            raise Unreachable("the server speaks TLS", code="E4013", retryable=False, hint="the address begins with https://")
        if not data:
            raise Unreachable(f"the connection ended before {what}", code="E4002", retryable=True)
        self.began = True
        self._buffer += data

    async def read_head(self, method: str) -> None:
        """Reads the status and the headers."""
        for _ in range(INTERIM_MAX):
            while (end := self._buffer.find(b"\r\n\r\n")) < 0:
                if len(self._buffer) > HEAD_MAX:
                    raise bad(f"its head is longer than {HEAD_MAX} bytes")
                await self._more("the answer")
            if end > HEAD_MAX:
                raise bad(f"its head is longer than {HEAD_MAX} bytes")
            head, self._buffer = self._buffer[:end].decode("latin-1"), self._buffer[end + 4 :]
            self._read_lines(head.split("\r\n"))
            if self.status >= 200:
                return self._begin_body(method)
        raise bad("it has too many interim answers")

    def _read_lines(self, lines: list[str]) -> None:
        words = lines[0].split(" ", 2)
        if not words[0].startswith("HTTP/1.") or len(words) < 2 or not is_digits(words[1], 3):
            raise bad("it is no HTTP")
        self.status = int(words[1])
        self.headers, self.warnings = {}, []
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip():
                raise bad("a header cannot be read")
            name, value = name.lower(), value.strip()
            if name == "warning":
                self.warnings.append(value)
            if name == "content-length" and self.headers.get(name, value) != value:
                raise bad("it has two lengths")
            self.headers[name] = value
        self.is_reusable = words[0] == "HTTP/1.1" and "close" not in self.headers.get("connection", "").lower()

    def _begin_body(self, method: str) -> None:
        length = self.headers.get("content-length")
        if method == "HEAD" or self.status in (204, 304):
            self._form, self._left = "length", 0
        elif "transfer-encoding" in self.headers:
            if self.headers["transfer-encoding"].lower() != "chunked":
                raise bad("its encoding is not supported")
            self._form = "chunked"
        elif length is not None:
            if not is_digits(length, 18):
                raise bad("its length cannot be read")
            self._form, self._left = "length", int(length)
        else:
            self._form, self.is_reusable = "close", False

    async def read(self) -> bytes:
        """The next piece of the body; empty at its end."""
        if self.is_over:
            return b""
        if self._form == "chunked" and self._left == 0 and not await self._next_chunk():
            return self._end()
        if self._form == "length" and self._left == 0:
            return self._end()
        if not self._buffer:
            data = await self.connection.read(self.until)
            if not data and self._form == "close":
                return self._end()
            if not data:
                raise Unreachable("the connection ended within the answer", code="E4002", retryable=True)
            self._buffer = data
        if self._form == "close":
            piece, self._buffer = self._buffer, b""
            return piece
        piece, self._buffer = self._buffer[: self._left], self._buffer[self._left :]
        self._left -= len(piece)
        if self._form == "chunked" and self._left == 0:
            await self._line_end()
        return piece

    async def _line(self) -> str:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > LINE_MAX:
                raise bad("a line between its chunks is too long")
            await self._more("the end of the answer")
        line, self._buffer = self._buffer[:end], self._buffer[end + 2 :]
        return line.decode("latin-1")

    async def _line_end(self) -> None:
        if await self._line():
            raise bad("a chunk is longer than it says")

    async def _next_chunk(self) -> bool:
        size = (await self._line()).split(";", 1)[0].strip()
        if not size or len(size) > 12 or any(digit not in "0123456789abcdefABCDEF" for digit in size):
            raise bad("the size of a chunk cannot be read")
        self._left = int(size, 16)
        if self._left:
            return True
        for _ in range(64):
            if not await self._line():
                return False
        raise bad("it has too many trailers")

    def _end(self) -> bytes:
        self.is_over = True
        # What follows an answer that nobody asked for belongs to no answer.
        self.is_reusable = self.is_reusable and not self._buffer
        return b""

    async def whole(self, most: int) -> bytes:
        """All of the body."""
        pieces, size = [], 0
        while piece := await self.read():
            size += len(piece)
            if size > most:
                raise bad(f"it is longer than {most} bytes")
            pieces.append(piece)
        return b"".join(pieces)


def is_digits(text: str, most: int) -> bool:
    return 0 < len(text) <= most and text.isascii() and text.isdigit()


def bad(why: Any) -> BadAnswer:
    return BadAnswer(f"the server's answer could not be read: {why}", code="E4005", retryable=False)
