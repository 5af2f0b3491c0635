"""What the generated operations are made of, with and without async."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any, Generic, TypeVar

from ._core import Call, Core, Pieces, Stream, path_of, query_of, write_json
from ._errors import seconds_of
from ._io import drive
from ._sse import Event

Data = TypeVar("Data")

#: Parameters that make an answer wait.
WAITS = ("wait", "timeout", "queue_wait")
#: Types of bodies other than JSON.
PACKAGE = "application/gzip"


def call_of(
    core: Core,
    method: str,
    path: str,
    names: dict[str, str],
    query: dict[str, Any],
    headers: dict[str, Any],
    body: Any,
    deadline: float | None,
) -> Call:
    """A request of an operation."""
    waits = sum(seconds_of(query.get(name)) or 0.0 for name in WAITS)
    if query.get("namespace", "") is None:
        query["namespace"] = core.settings.namespace
    given = core.deadline if deadline is None else deadline
    call = Call(method, path_of(path, names), query_of(query), deadline=None if given is None else given + waits)
    call.patience += waits
    call.headers = {name: str(value) for name, value in headers.items() if value is not None}
    if isinstance(body, bytes):
        call.headers["Content-Type"], call.body = PACKAGE, body
    elif body is not None:
        call.body = write_json(body)
    return call


def stream_of(core: Core, call: Call) -> Stream:
    """A stream of an operation. A log begins with its first line, so it repeats nothing as long as no line has come."""
    return Stream(core, call, repeats=call.path.endswith("/logs"))


class AsyncEvents(Generic[Data]):
    """Events, for `async for`. It goes on after the last event when a controller is lost."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    @property
    def last(self) -> str:
        """The id of the last event, after which another stream can begin."""
        return self._stream.last

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        event = await self._stream.next()
        if event is None:
            raise StopAsyncIteration
        return event

    async def close(self) -> None:
        await self._stream.close()

    async def __aenter__(self) -> AsyncEvents[Data]:
        return self

    async def __aexit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()


class Events(Generic[Data]):
    """Events, for `for`. It goes on after the last event when a controller is lost."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    @property
    def last(self) -> str:
        """The id of the last event, after which another stream can begin."""
        return self._stream.last

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        event = drive(self._stream.next())
        if event is None:
            raise StopIteration
        return event

    def close(self) -> None:
        drive(self._stream.close())

    def __enter__(self) -> Events[Data]:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class AsyncBytes:
    """Bytes, piece by piece, for `async for`."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        piece = await self._pieces.next()
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def close(self) -> None:
        await self._pieces.close()


class Bytes:
    """Bytes, piece by piece, for `for`."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        piece = drive(self._pieces.next())
        if piece is None:
            raise StopIteration
        return piece

    def close(self) -> None:
        drive(self._pieces.close())


class AsyncCalls:
    """The parts of each operation with async."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def _json(self, *parts: Any) -> Any:
        return await self._core.json(call_of(self._core, *parts))

    async def _text(self, *parts: Any) -> str:
        call = call_of(self._core, *parts)
        call.headers.setdefault("Accept", "*/*, application/problem+json")
        return (await self._core.whole(call)).decode("utf-8", "replace")

    def _stream(self, *parts: Any) -> AsyncEvents[Any]:
        return AsyncEvents(stream_of(self._core, call_of(self._core, *parts)))

    def _bytes(self, *parts: Any) -> AsyncBytes:
        return AsyncBytes(Pieces(self._core, call_of(self._core, *parts)))


class Calls:
    """The parts of each operation without async."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def _json(self, *parts: Any) -> Any:
        return drive(self._core.json(call_of(self._core, *parts)))

    def _text(self, *parts: Any) -> str:
        call = call_of(self._core, *parts)
        call.headers.setdefault("Accept", "*/*, application/problem+json")
        return drive(self._core.whole(call)).decode("utf-8", "replace")

    def _stream(self, *parts: Any) -> Events[Any]:
        return Events(stream_of(self._core, call_of(self._core, *parts)))

    def _bytes(self, *parts: Any) -> Bytes:
        return Bytes(Pieces(self._core, call_of(self._core, *parts)))
