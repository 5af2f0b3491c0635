"""The clients: submit jobs, wait for them, follow them, answer what they ask, and talk to agents."""

from __future__ import annotations

import asyncio
import functools
import json
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from ._calls import AsyncEvents, Events
from ._context import find
from ._core import Call, Core, Policy, Stream, new_key, path_of, query_of
from ._errors import AtlasError, JobCancelled, JobFailed, WaitTimeout, text_of
from ._http import bad
from ._io import AsyncIo, BlockingIo, Io, drive
from ._operations import AsyncOperations, Operations
from ._sse import Event
from ._types import Conversation, Job, Question

#: Seconds that one request waits for the end of a job.
WAIT_SECONDS = 25.0
#: Seconds before a job is asked for again if the answer came at once.
PAUSE_SECONDS = 0.25
#: Retries that a wait follows.
RETRIES_MAX = 1000
#: Seconds for which a message waits until the conversation has answered the one before.
TURN_SECONDS = 600.0
#: Most bytes of an answer that are read into memory.
ANSWER_MAX = 64 << 20
ENDED = ("completed", "failed", "cancelled")

Answering = Callable[[Question], Any]
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Reply:
    """What an agent said in a conversation."""

    #: Its answer as text.
    text: str
    #: The whole output of the job.
    output: Any
    job_id: str


def reply_text(output: Any) -> str:
    """The text of an output: its member `result`, `message` or `text`, or its only member; otherwise JSON."""
    if isinstance(output, dict):
        for name in ("result", "message", "text"):
            if isinstance(output.get(name), str):
                return output[name]
        values = list(output.values())
        if len(values) == 1 and isinstance(values[0], str):
            return values[0]
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)


class JobStream(Stream):
    """The stream of one job. It ends when the job has, and not because a controller stops."""

    def __init__(self, core: Core, call: Call, api: AsyncOperations, job_id: str, last: str) -> None:
        super().__init__(core, call, last=last)
        self.api, self.job_id = api, job_id
        self.has_ended = False
        self.seen = 0

    async def next(self) -> Event | None:
        while True:
            before = self.passed
            event = await super().next()
            if event is not None:
                self.has_ended = self.has_ended or text_of(event.data, "new_status") in ENDED
                return event
            if self.has_ended or self.seen == before and await self._is_over():
                return None
            self.seen = before
            self.breaks += 1
            if self.breaks >= self.core.policy.rounds:
                raise bad("the stream of a job that has not ended ends at once, again and again")
            self.core.current += 1
            await self.core.io.sleep(self.core.policy.after(self.breaks - 1))
            self.again()

    async def _is_over(self) -> bool:
        return (await self.api.get_job(self.job_id)).get("status") in ENDED


class AsyncClient:
    """A client of one cluster, for asyncio. `api` has every operation of the interface."""

    def __init__(
        self,
        servers: str | Sequence[str] | None = None,
        *,
        token: str | None = None,
        context: str | None = None,
        namespace: str | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        deadline: float | None = 60.0,
        policy: Policy | None = None,
        answer_max: int = ANSWER_MAX,
        _io: Io | None = None,
    ) -> None:
        """
        servers: addresses of controllers; without them `ATLAS_SERVER`, then the context, then this machine.
        token: without it `ATLAS_TOKEN`, then the one of the context.
        context: the name of a context of atlasctl; without it `ATLAS_CONTEXT`, then the current one.
        namespace: without it `ATLAS_NAMESPACE`, then `default`.
        ca_file: the certificates to trust alone; without it `ATLAS_CA_FILE`, then those of the context, then those of this machine.
        deadline: seconds in which a request has to be answered, with all repeats; None for no limit.
        policy: how often requests are repeated.
        answer_max: most bytes of an answer that are read into memory.
        """
        named = list(servers) if servers is not None and not isinstance(servers, str) else servers
        settings = find(named, token, context, namespace, ca_file)
        self._core = Core(_io or AsyncIo(), settings, policy or Policy(), deadline, answer_max)
        self.api = AsyncOperations(self._core)

    async def submit(
        self,
        agent: str,
        input: Any = None,
        *,
        key: str | None = None,
        version: str | None = None,
        priority: int | None = None,
        labels: Mapping[str, str] | None = None,
        timeout: float | None = None,
        at: float | None = None,
        budget_usd: float | str | None = None,
        questions: str | None = None,
        unsatisfiable: str | None = None,
        title: str | None = None,
        conversation: str | None = None,
        validate: bool = True,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> str:
        """Submits a job and returns its id. The key is made once and kept over all repeats, so that one job is made; give your own to make
        one job also over restarts of your program. With `validate=False` an input that breaks the contract makes a job that fails."""
        given = {
            "version": version,
            "priority": priority,
            "labels": dict(labels) if labels is not None else None,
            "timeout": timeout,
            "at": at,
            "budget_usd": budget_usd,
            "questions": questions,
            "unsatisfiable": unsatisfiable,
            "title": title,
            "conversation": conversation,
        }
        body: Any = {"agent": agent, "input": {} if input is None else input}
        body.update({name: value for name, value in given.items() if value is not None})
        answer = await self.api.submit_job(
            body,
            validate="refuse" if validate else None,
            idempotency_key=key or new_key(),
            namespace=namespace,
            deadline=deadline,
        )
        job_id = text_of(answer, "id")
        if not job_id:
            raise bad("it has no id of a job")
        return job_id

    async def wait(
        self,
        job_id: str,
        *,
        deadline: float | None = None,
        on_question: Callable[[Question], Any] | None = None,
        namespace: str | None = None,
    ) -> Any:
        """Waits for the end of a job and of its retries and returns the output. Raises JobFailed, JobCancelled or, after `deadline`
        seconds, WaitTimeout. `on_question` gets each question and returns its answer; None leaves it to others."""
        job = await self.wait_job(job_id, deadline=deadline, on_question=on_question, namespace=namespace)
        status = job.get("status")
        if status == "completed":
            return job.get("output_data")
        raise (JobCancelled if status == "cancelled" else JobFailed)(dict(job))

    async def wait_job(
        self,
        job_id: str,
        *,
        deadline: float | None = None,
        on_question: Callable[[Question], Any] | None = None,
        namespace: str | None = None,
    ) -> Job:
        """Like `wait`, but returns the job, whether it failed or not: the last of its retries."""
        io = self._core.io
        until = None if deadline is None else io.now() + deadline
        latest, retries, left_open = job_id, 0, set[str]()
        while True:
            begun = io.now()
            left = WAIT_SECONDS if until is None else until - begun
            if left <= 0:
                raise WaitTimeout(latest, deadline or 0)
            job = await self.api.wait_for_job(
                latest,
                timeout=round(max(min(left, WAIT_SECONDS), 0.001), 3),
                questions=True if on_question else None,
                view="full",
                namespace=namespace,
            )
            if not isinstance(job, dict):
                raise bad("it is no job")
            if job.get("status") in ENDED:
                retry = text_of(job, "retried_by")
                if not retry or retries >= RETRIES_MAX:
                    return job
                latest, retries = retry, retries + 1
                continue
            asked = job.get("needs_answer")
            news = [one for one in asked if isinstance(one, str) and one not in left_open] if isinstance(asked, list) else []
            if on_question is not None and news:
                for question in news:
                    left_open.add(question)
                    await self._ask(question, on_question, namespace)
                continue
            # Also a server that answers at once is not asked without a pause.
            if io.now() - begun < PAUSE_SECONDS and until != begun:
                await io.sleep(PAUSE_SECONDS if until is None else max(min(PAUSE_SECONDS, until - io.now()), 0.0))

    async def _ask(self, question: str, on_question: Answering, namespace: str | None) -> None:
        shown = await self.api.get_question(question, namespace=namespace)
        if not isinstance(shown, dict) or shown.get("status", "open") != "open":
            return
        answer = on_question(shown)
        if isinstance(answer, Awaitable):
            answer = await answer
        if answer is None:
            return
        try:
            await self.answer(question, answer, namespace=namespace)
        except AtlasError as error:
            # Somebody else answered first: the first answer stands.
            if error.code != "E3041":
                raise

    async def run(
        self,
        /,
        agent: str,
        input: Any = None,
        *,
        deadline: float | None = None,
        on_question: Callable[[Question], Any] | None = None,
        **options: Any,
    ) -> Any:
        """Submits a job, waits for its end and returns the output. `options` are those of `submit`."""
        if on_question is not None:
            options.setdefault("questions", "wait")
        until = None if deadline is None else self._core.io.now() + deadline
        job_id = await self.submit(agent, input, deadline=self._less(deadline), **options)
        left = None if until is None else max(until - self._core.io.now(), 0.001)
        return await self.wait(job_id, deadline=left, on_question=on_question, namespace=options.get("namespace"))

    def _less(self, deadline: float | None) -> float | None:
        usual = self._core.deadline
        return deadline if usual is None or deadline is None else min(usual, deadline)

    def stream(
        self, job_id: str, *, after: str = "", deltas: bool = False, namespace: str | None = None
    ) -> AsyncEvents[Any]:
        """The changes of a job until it has ended, each once: past ones first. When a controller is lost, another one goes on after the
        last event. `after` is the id of an event to go on after; `deltas` adds pieces of models' answers."""
        return AsyncEvents(self._job_stream(job_id, after, deltas, namespace))

    def _job_stream(self, job_id: str, after: str, deltas: bool, namespace: str | None) -> JobStream:
        query = {"view": "full", "deltas": True if deltas else None, "namespace": namespace or self._core.settings.namespace}
        path = path_of("/api/jobs/{id}/events", {"id": job_id})
        call = Call("GET", path, query_of(query), deadline=self._core.deadline)
        return JobStream(self._core, call, AsyncOperations(self._core), job_id, after)

    async def job(self, job_id: str, *, namespace: str | None = None) -> Job:
        """A job with all its members."""
        return await self.api.get_job(job_id, view="full", namespace=namespace)

    async def cancel(self, job_id: str, *, namespace: str | None = None) -> bool:
        """Cancels a job and the jobs that it spawned; false if there was nothing to cancel."""
        return bool((await self.api.cancel_job(job_id, namespace=namespace)).get("cancelled"))

    async def answer(self, question_id: str, answer: Any, *, namespace: str | None = None) -> Question:
        """Answers a question of a job. The first answer stands."""
        return await self.api.answer_question(question_id, {"answer": answer}, namespace=namespace)

    async def send(
        self,
        /,
        agent: str,
        message: str,
        *,
        conversation: str,
        input: Mapping[str, Any] | None = None,
        deadline: float | None = None,
        **options: Any,
    ) -> Reply:
        """Says something to an agent in a conversation, which it continues or begins, and waits for the answer. While an earlier message
        is answered, this one waits for its turn. `input` has other members of the input."""
        until = None if deadline is None else self._core.io.now() + deadline
        body = {**(input or {}), "message": message}
        turn = TURN_SECONDS if deadline is None else min(TURN_SECONDS, deadline)
        job_id = await self.submit(agent, body, conversation=conversation, deadline=turn, **options)
        left = None if until is None else max(until - self._core.io.now(), 0.001)
        output = await self.wait(job_id, deadline=left, namespace=options.get("namespace"))
        return Reply(reply_text(output), output, job_id)

    async def conversation(self, conversation_id: str, *, namespace: str | None = None) -> Conversation:
        """A conversation with its messages, the oldest first."""
        return await self.api.get_conversation(conversation_id, namespace=namespace)

    async def upload(self, package: bytes | str | os.PathLike[str], *, replace: bool = False) -> Any:
        """Registers an agent from its package: the bytes of a tar archive compressed with gzip, or the path of a file with them."""
        if not isinstance(package, bytes):
            file = package
            package = await self._core.io.blocking(lambda: read_file(file))
        return await self.api.register_agent(package, replace=True if replace else None)

    async def download_backup(self, path: str | os.PathLike[str]) -> int:
        """Writes a backup of the cluster to a file, which is there once it is complete; returns its size."""
        partial, size = f"{os.fspath(path)}.part", 0
        pieces = self.api.snapshot()
        try:
            with open(partial, "wb") as file:
                async for piece in pieces:
                    size += file.write(piece)
            os.replace(partial, path)
        finally:
            await pieces.close()
        return size

    async def close(self) -> None:
        """Closes the connections."""
        self._core.close()
        # A connection of an event loop is closed in its next round.
        if isinstance(self._core.io, AsyncIo):
            await asyncio.sleep(0)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()


def blocking(method: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Client, P], T]:
    """A method without async, with the same arguments."""

    @functools.wraps(method)
    def call(self: Client, *arguments: P.args, **options: P.kwargs) -> T:
        return drive(method(self._client, *arguments, **options))

    return call  # type: ignore[return-value]


class Client:
    """The same client without async. Several threads may share one. `api` has every operation of the interface."""

    def __init__(self, servers: str | Sequence[str] | None = None, **options: Any) -> None:
        """The arguments are those of `AsyncClient`."""
        self._client = AsyncClient(servers, _io=BlockingIo(), **options)
        self.api = Operations(self._client._core)

    submit = blocking(AsyncClient.submit)
    wait = blocking(AsyncClient.wait)
    wait_job = blocking(AsyncClient.wait_job)
    run = blocking(AsyncClient.run)
    job = blocking(AsyncClient.job)
    cancel = blocking(AsyncClient.cancel)
    answer = blocking(AsyncClient.answer)
    send = blocking(AsyncClient.send)
    conversation = blocking(AsyncClient.conversation)
    upload = blocking(AsyncClient.upload)
    download_backup = blocking(AsyncClient.download_backup)
    close = blocking(AsyncClient.close)

    def stream(
        self, job_id: str, *, after: str = "", deltas: bool = False, namespace: str | None = None
    ) -> Events[Any]:
        """The changes of a job until it has ended, each once. The arguments are those of `AsyncClient.stream`."""
        return Events(self._client._job_stream(job_id, after, deltas, namespace))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def read_file(path: Any) -> bytes:
    with open(path, "rb") as file:
        return file.read()
