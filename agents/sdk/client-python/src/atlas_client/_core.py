"""Requests: to which controller, how often, and for how long. Written once, for clients with and without async."""

from __future__ import annotations

import json
import logging
import random
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from ._context import Server, Settings
from ._errors import AtlasError, BadAnswer, Unavailable, Unreachable, refusal
from ._http import Answer, Connection, bad, request_bytes
from ._io import Io
from ._login import ContextToken
from ._sse import Event, Parser

#: Connections that are kept to each controller while nobody uses them, and for how many seconds.
IDLE_MAX = 8
IDLE_SECONDS = 60
#: Seconds to connect, and without a byte of an event stream: controllers say every 15 s that they are there.
CONNECT_SECONDS = 5
SILENCE_SECONDS = 60
#: Most bytes of the text of a refusal.
REFUSAL_MAX = 1 << 20
#: Longest pause that a controller may ask for.
AFTER_MAX = 3600

#: Warnings of one answer that are logged.
WARNINGS_MAX = 10

JSON = "application/problem+json, application/json"
LOG = logging.getLogger("atlas_client")


@dataclass(frozen=True)
class Policy:
    """How often a request is repeated: as long as its deadline permits, and no more often than `rounds`."""

    #: Rounds over all controllers.
    rounds: int = 30
    #: Seconds before the first repeat; each further pause is twice as long, up to `pause_max`. Half of each is by chance.
    pause: float = 0.1
    pause_max: float = 5.0

    def after(self, round_: int) -> float:
        """The pause after a round, from 0 on."""
        return min(self.pause * 2.0 ** min(round_, 30), self.pause_max) * random.uniform(0.5, 1.0)


@dataclass
class Call:
    """A request before it is sent. It can be sent again as it is."""

    method: str
    path: str
    query: list[tuple[str, str]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    #: Seconds in which it has to be answered, with all repeats.
    deadline: float | None = 60.0
    #: Seconds in which one controller has to begin its answer.
    patience: float = 30.0


def path_of(template: str, names: Mapping[str, str]) -> str:
    """A path with names in its braces, each of which stays one part of it."""
    path = template
    for name, value in names.items():
        text = str(value)
        if not text or text in (".", ".."):
            raise ValueError(f"{name} is empty" if not text else f"{name} cannot be {text!r}")
        path = path.replace("{" + name + "}", quote(text, safe=""))
    return path


def query_of(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The members of a query that are given; a list is a member for each of its items."""
    pairs = []
    for name, value in values.items():
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if item is not None:
                pairs.append((name, ("false", "true")[item] if isinstance(item, bool) else str(item)))
    return pairs


def new_key() -> str:
    """A key by which a repeat is known."""
    return f"py-{secrets.token_hex(16)}"


class Core:
    """A client of one cluster, by one or more of its controllers."""

    def __init__(self, io: Io, settings: Settings, policy: Policy, deadline: float | None, answer_max: int) -> None:
        self.io = io
        self.settings = settings
        self.policy = policy
        self.deadline = deadline
        self.answer_max = answer_max
        self.tls = settings.tls()
        self.token: str | ContextToken | None = settings.token
        if settings.login is not None and settings.token is not None:
            name, ends = settings.login
            self.token = ContextToken(name, settings.token, ends)
        #: The place of the controller that answered last.
        self.current = 0
        self._idle: dict[Server, list[tuple[Connection, float]]] = {}
        self._lock = threading.Lock()

    # Requests

    async def json(self, call: Call) -> Any:
        """Sends a request and reads the JSON of its answer."""
        call.headers.setdefault("Accept", JSON)
        return read_json(await self.whole(call))

    async def whole(self, call: Call) -> bytes:
        """Sends a request and reads all of its answer. Repeats it if the answer breaks off."""
        until = self._until(call)
        for _ in range(self.policy.rounds):
            answer = await self.send(call, until)
            answer.until = self._by(until, call.patience)
            try:
                body = await answer.whole(self.answer_max)
            except Unreachable:
                self.drop(answer)
                if until is not None and self.io.now() >= until:
                    raise
                self.current += 1
                continue
            except BaseException:
                self.drop(answer)
                raise
            self.release(answer)
            return body
        raise Unreachable("every answer broke off", code="E4002", retryable=True)

    async def send(self, call: Call, until: float | None = None) -> Answer:
        """Sends a request to the controller that answered last, and to the others if it cannot answer. A change has a key, so that it
        happens once even if several controllers receive it."""
        until = self._until(call) if until is None else until
        if call.method != "GET":
            call.headers.setdefault("Idempotency-Key", new_key())
        rounds = 0
        while True:
            failed = await self._round(call, until)
            if isinstance(failed, Answer):
                return failed
            rounds += 1
            pause = max(self.policy.after(rounds - 1), min(failed.retry_after or 0, AFTER_MAX))
            is_late = until is not None and self.io.now() + pause >= until
            if not failed.retryable or is_late or rounds >= self.policy.rounds:
                raise failed
            await self.io.sleep(pause)

    async def _round(self, call: Call, until: float | None) -> Answer | AtlasError:
        """Asks each controller once. What is not an answer says most about why there is none."""
        servers = self.settings.servers
        first = self.current % len(servers)
        failed: AtlasError | None = None
        for step in range(len(servers)):
            place = (first + step) % len(servers)
            try:
                answer = await self._once(servers[place], call, until)
            except Unreachable as lost:
                failed = lost if failed is None else telling(failed, lost)
                continue
            if 200 <= answer.status < 300:
                self.current = place
                for warning in answer.warnings[:WARNINGS_MAX]:
                    LOG.warning("%s", warning_text(warning))
                return answer
            error = await self._refusal(answer)
            failed = error if failed is None else telling(failed, error)
            # Of a limit, every controller says the same.
            if not isinstance(error, Unavailable):
                self.current = place
                return error
        # The next round begins elsewhere: this controller may answer that it cannot, for as long as it is alone.
        self.current = first + 1
        return failed or BadAnswer("there is no controller", retryable=False)

    async def _once(self, server: Server, call: Call, until: float | None) -> Answer:
        headers = {"Host": server.where, **call.headers, "User-Agent": "atlas-client-python/0.1.0"}
        if (token := await self._token()) is not None:
            headers["Authorization"] = f"Bearer {token}"
        if call.body is not None:
            headers.setdefault("Content-Type", "application/json")
        target = server.prefix + call.path + (f"?{urlencode(call.query)}" if call.query else "")
        data = request_bytes(call.method, target, headers, call.body)
        while True:
            connection = await self._connect(server, until)
            answer = Answer(connection, self._by(until, call.patience))
            answer.server = server
            try:
                await self._exchange(connection, answer, data, call.method)
                return answer
            except Unreachable:
                connection.close()
                # A controller may have closed a connection that nobody used; that says nothing about the controller.
                if connection.used == 0 or answer.began:
                    raise
            except BaseException:
                connection.close()
                raise

    async def _exchange(self, connection: Connection, answer: Answer, data: bytes, method: str) -> None:
        try:
            await connection.write(data, answer.until)
        except Unreachable:
            # A controller that refuses a body may close before it has all of it. What it said first still counts.
            try:
                return await answer.read_head(method)
            except AtlasError:
                pass
            raise
        await answer.read_head(method)

    async def _refusal(self, answer: Answer) -> AtlasError:
        try:
            body: Any = await answer.whole(REFUSAL_MAX)
            self.release(answer)
        except AtlasError:
            body = b""
            self.drop(answer)
        except BaseException:
            self.drop(answer)
            raise
        try:
            body = read_json(body)
        except BadAnswer:
            body = None
        return refusal(answer.status, answer.headers, body)

    async def _token(self) -> str | None:
        token = self.token
        if not isinstance(token, ContextToken):
            return token
        return await self.io.blocking(token.renew) if token.is_due() else token.text

    def _until(self, call: Call) -> float | None:
        return None if call.deadline is None else self.io.now() + call.deadline

    def _by(self, until: float | None, seconds: float) -> float:
        at = self.io.now() + seconds
        return at if until is None else min(at, until)

    # Connections

    async def _connect(self, server: Server, until: float | None) -> Connection:
        while (connection := self._take(server)) is not None:
            if self.io.is_usable(connection):
                return connection
            connection.close()
        tls = self.tls if server.tls else None
        return await self.io.connect(server.host, server.port, tls, self._by(until, CONNECT_SECONDS))

    def _take(self, server: Server) -> Connection | None:
        with self._lock:
            idle = self._idle.get(server, [])
            while idle:
                connection, since = idle.pop()
                if self.io.now() - since < IDLE_SECONDS:
                    connection.used += 1
                    return connection
                connection.close()
        return None

    def release(self, answer: Answer) -> None:
        """Keeps the connection of an answer that was read to its end."""
        if not (answer.is_over and answer.is_reusable):
            return self.drop(answer)
        with self._lock:
            idle = self._idle.setdefault(answer.server, [])
            if len(idle) < IDLE_MAX:
                idle.append((answer.connection, self.io.now()))
                return
        self.drop(answer)

    def drop(self, answer: Answer) -> None:
        answer.connection.close()

    def close(self) -> None:
        with self._lock:
            for idle in self._idle.values():
                for connection, _ in idle:
                    connection.close()
            self._idle.clear()


class Pieces:
    """The bytes of an answer, piece by piece."""

    def __init__(self, core: Core, call: Call) -> None:
        self.core, self.call = core, call
        self.answer: Answer | None = None

    async def next(self) -> bytes | None:
        if self.answer is None:
            self.call.headers.setdefault("Accept", "*/*, application/problem+json")
            self.answer = await self.core.send(self.call)
        # The answer as a whole may take longer than a request.
        self.answer.until = self.core.io.now() + SILENCE_SECONDS
        try:
            piece = await self.answer.read()
        except BaseException:
            self.core.drop(self.answer)
            raise
        if piece:
            return piece
        self.core.release(self.answer)
        return None

    async def close(self) -> None:
        if self.answer is not None and not self.answer.is_over:
            self.core.drop(self.answer)


class Stream:
    """A stream of events, which goes on after the last event at this controller or another one when it breaks."""

    def __init__(self, core: Core, call: Call, *, last: str = "", repeats: bool = False) -> None:
        self.core, self.call, self.last = core, call, last
        #: Whether a stream that begins again without a last event repeats nothing.
        self.repeats = repeats
        self.answer: Answer | None = None
        self.parser = Parser()
        self.ready: list[Event] = []
        self.breaks = 0
        self.passed = 0
        self.is_over = False

    async def next(self) -> Event | None:
        """The next event; none at the end."""
        while not self.ready:
            if self.is_over:
                return None
            answer = self.answer or await self._open()
            try:
                await self._read(answer)
            except Unreachable:
                self._break()
                self.breaks += 1
                blind = not self.last and self.passed > 0 and not self.repeats
                if blind or self.breaks >= self.core.policy.rounds:
                    raise
                self.core.current += 1
                await self.core.io.sleep(self.core.policy.after(self.breaks - 1))
            except BaseException:
                self._break()
                raise
        event = self.ready.pop(0)
        self.passed += 1
        if event.id:
            self.last, self.breaks = event.id, 0
        return event

    async def _open(self) -> Answer:
        headers = {**self.call.headers, "Accept": "text/event-stream, application/problem+json"}
        if self.last:
            headers["Last-Event-ID"] = self.last
        call = Call(self.call.method, self.call.path, self.call.query, headers, None, self.call.deadline)
        self.answer = answer = await self.core.send(call)
        self.parser = Parser()
        kind = answer.headers.get("content-type", "")
        if not kind.startswith("text/event-stream"):
            await self.close()
            raise bad(f'it is no stream of events, but "{kind[:100]}"')
        return answer

    async def _read(self, answer: Answer) -> None:
        answer.until = self.core.io.now() + SILENCE_SECONDS
        piece = await answer.read()
        if not piece:
            self.core.release(answer)
            self.answer, self.is_over = None, True
            return
        for id_, kind, data in self.parser.push(piece):
            self.ready.append(Event(id_, kind, read_json(data)))

    def again(self) -> None:
        """Opens the stream again after the last event, although it has ended."""
        self.is_over = False

    def _break(self) -> None:
        if self.answer is not None:
            self.core.drop(self.answer)
        self.answer = None

    async def close(self) -> None:
        self._break()
        self.is_over = True
        self.ready.clear()


def telling(one: AtlasError, other: AtlasError) -> AtlasError:
    """That of two failures which tells more: a refusal says more than that nobody answers."""

    def rank(error: AtlasError) -> int:
        return {"E4002": 0, "E4013": 1, "E4001": 2}.get(error.code, 3)

    return other if rank(other) > rank(one) else one


def warning_text(header: str) -> str:
    """The text of a header `Warning`: `299 atlas "text"`. Another form stays as it is."""
    text = header.split(" ", 2)[-1]
    quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return (text[1:-1].replace('\\"', '"') if quoted else header)[:1000]


def read_json(body: bytes | str) -> Any:
    """JSON from a server, which may be anything."""
    try:
        return json.loads(body, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
        raise bad(why) from error


def no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def write_json(value: Any) -> bytes:
    """JSON for a server."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
