"""Sockets and clocks, blocking and for asyncio.

What the client does is written once, as coroutines. With blocking sockets none of them ever waits, so `drive` runs them to their end.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import ssl
import time
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from ._errors import BadSettings, Unreachable
from ._http import READ, Connection

T = TypeVar("T")


def drive(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    work.close()
    raise RuntimeError("a client without async waited for an event loop")


class Io(Protocol):
    """What the client needs of the machine."""

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...

    async def connect(self, host: str, port: int, tls: ssl.SSLContext | None, until: float) -> Connection: ...

    def is_usable(self, connection: Any) -> bool: ...

    async def blocking(self, function: Callable[[], T]) -> T: ...


def unreachable(where: str, error: BaseException) -> Unreachable:
    """Why a controller did not answer."""
    if isinstance(error, ssl.SSLError):
        # Another controller does not make a certificate right that is not.
        why = error.reason or str(error)
        if isinstance(error, ssl.SSLCertVerificationError):
            why = error.verify_message
        return Unreachable(f"TLS with {where} failed: {why}", code="E4013", retryable=False, hint=TLS_HINT)
    if isinstance(error, (TimeoutError, asyncio.TimeoutError, socket.timeout)):
        return Unreachable(f"{where} did not answer in time", code="E4002", retryable=True)
    return Unreachable(f"could not reach Atlas at {where}: {error}", code="E4002", retryable=True)


TLS_HINT = "give the certificate of the cluster, and one of the names in that of the controller"
FAILURES = (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError, EOFError)


class BlockingConnection:
    """A connection with a blocking socket."""

    def __init__(self, raw: socket.socket, where: str) -> None:
        self.raw, self.where, self.used, self.process = raw, where, 0, os.getpid()

    def _limit(self, until: float | None) -> None:
        left = None if until is None else until - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError
        self.raw.settimeout(left)

    async def read(self, until: float | None) -> bytes:
        try:
            self._limit(until)
            return self.raw.recv(READ)
        except FAILURES as error:
            raise unreachable(self.where, error) from error

    async def write(self, data: bytes, until: float | None) -> None:
        try:
            self._limit(until)
            self.raw.sendall(data)
        except FAILURES as error:
            raise unreachable(self.where, error) from error

    def close(self) -> None:
        if self.process == os.getpid():
            self.raw.close()


class BlockingIo:
    """Blocking sockets. Several threads may use it."""

    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def connect(self, host: str, port: int, tls: ssl.SSLContext | None, until: float) -> BlockingConnection:
        where = f"{host}:{port}"
        raw = None
        try:
            raw = socket.create_connection((host, port), timeout=max(until - time.monotonic(), 0.001))
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return BlockingConnection(tls.wrap_socket(raw, server_hostname=host) if tls else raw, where)
        except UnicodeError as error:
            raise BadSettings(f'"{host}" is not a name of a machine') from error
        except FAILURES as error:
            if raw is not None:
                raw.close()
            raise unreachable(where, error) from error

    def is_usable(self, connection: BlockingConnection) -> bool:
        if connection.process != os.getpid() or connection.raw.fileno() < 0:
            return False
        # Whatever arrived while nobody asked, an end or bytes, belongs to no answer.
        if not hasattr(select, "poll"):
            return not select.select([connection.raw], [], [], 0)[0]
        poll = select.poll()
        poll.register(connection.raw, select.POLLIN)
        return not poll.poll(0)

    async def blocking(self, function: Callable[[], T]) -> T:
        return function()


class AsyncConnection:
    """A connection of an event loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, where: str) -> None:
        self.reader, self.writer, self.where, self.used = reader, writer, where, 0
        self.loop = asyncio.get_running_loop()

    async def read(self, until: float | None) -> bytes:
        try:
            return await limited(self.reader.read(READ), until)
        except FAILURES as error:
            raise unreachable(self.where, error) from error

    async def write(self, data: bytes, until: float | None) -> None:
        try:
            self.writer.write(data)
            await limited(self.writer.drain(), until)
        except FAILURES as error:
            raise unreachable(self.where, error) from error

    def close(self) -> None:
        if not self.loop.is_closed():
            self.writer.transport.abort()


async def limited(work: Coroutine[Any, Any, T], until: float | None) -> T:
    """Waits no longer than until a time."""
    left = None if until is None else until - time.monotonic()
    if left is not None and left <= 0:
        work.close()
        raise TimeoutError
    return await asyncio.wait_for(work, left)


class AsyncIo:
    """The event loop of the caller."""

    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def connect(self, host: str, port: int, tls: ssl.SSLContext | None, until: float) -> AsyncConnection:
        where = f"{host}:{port}"
        try:
            name = host if tls else None
            reader, writer = await limited(asyncio.open_connection(host, port, ssl=tls, server_hostname=name), until)
            return AsyncConnection(reader, writer, where)
        except UnicodeError as error:
            raise BadSettings(f'"{host}" is not a name of a machine') from error
        except FAILURES as error:
            raise unreachable(where, error) from error

    def is_usable(self, connection: AsyncConnection) -> bool:
        is_here = connection.loop is asyncio.get_running_loop()
        return is_here and not connection.reader.at_eof() and not connection.writer.is_closing()

    async def blocking(self, function: Callable[[], T]) -> T:
        return await asyncio.to_thread(function)
