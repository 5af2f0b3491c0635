"""The calls of `self.context` whose ends are recorded: those of agents with `durable: true`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from atlas.llm.provider import LLMError, LLMResponse
from atlas.skills.types import SkillInvocationError

# Agents that are not durable load none of it.
if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from random import Random

    from atlas._durable.retry import Retry


class _NotDurable:
    """Instead of the calls, in agents that are not durable."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        from atlas._durable.words import NotDurable

        raise NotDurable(f"self.context.{_NAMES.get(name, name)}")


_NAMES = {"tool": "call_tool", "spawned": "spawn_all"}


class DurableCalls:
    """In code with `await`, each call that waits is awaited. In code without (an `execute` that is no coroutine, and threads of the agent), the
    same call blocks and returns its value. Agents that are not durable get an error that says what to add."""

    _durable: Any = _NotDurable()

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        effects: str | None = None,
        retry: Retry | dict[str, Any] | int | None = None,
        reconcile: Callable[..., Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Calls a function once: its end is recorded, and later attempts of the job get it without a call.

        `effects` says what happens if the worker is lost while the function runs: `pure` and `idempotent` run again, `once` does not.
        `reconcile` is called with the same arguments to find out whether a `once` step happened: it returns the step's result, or
        `DID_NOT_HAPPEN`. Without it, people are asked. An error is raised as `StepFailed`, after the tries of `retry`.
        """
        options = {"effects": effects, "retry": retry, "reconcile": reconcile}
        return self._durable.step(name, function, args, kwargs, options, (args, kwargs))

    def sleep(self, duration: float | timedelta) -> Any:
        """Waits for seconds or a `timedelta`. A long wait parks the job: it needs no process meanwhile."""
        return self._durable.sleep(duration)

    def until(self, when: datetime | float) -> Any:
        """Waits until a time: a `datetime` with a time zone, or seconds since 1970."""
        return self._durable.until(when)

    def ask(
        self,
        prompt: str,
        options: Sequence[str] | None = None,
        kind: str | None = None,
        timeout: float | timedelta | None = None,
        default: Any = None,
    ) -> Any:
        """Asks people and returns the answer; `None` if none came within `timeout`. `kind` is `text`, `confirm`, `choose` or `checkbox`."""
        return self._durable.ask(prompt, options, kind, timeout, default)

    def receive(self, name: str = "", timeout: float | timedelta | None = None) -> Any:
        """The next message of the channel `name`, or of any channel: a `Message`. `None` if none came within `timeout`."""
        return self._durable.receive(name, timeout)

    def spawn_all(self, jobs: Sequence[Any]) -> Any:
        """Jobs of other agents at the same time, each `(agent, input)` or a dictionary of the arguments of `spawn`. Returns their results in this order."""
        ask = self._durable.spawned([_job(job) for job in jobs], self._spawned)
        return self._durable.through(ask)

    def call_tool(self, name: str, input_data: dict[str, Any] | None = None) -> Any:
        """Calls a tool of the platform and returns its result."""
        ask = self._durable.tool(name, input_data or {})

        async def call(port):
            end = await ask(port)
            if "data" not in end:
                raise SkillInvocationError(end.get("refused") or end.get("error"))
            return end["data"]

        return self._durable.through(call)

    def model(
        self, prompt: Any, *, system: str | None = None, max_tokens: int | None = None, temperature: float | None = None
    ) -> Any:
        """Calls the model of the job, and returns an `LLMResponse`. `prompt` is a text, or a list of messages `{"role", "content"}`."""
        ask = self._durable.model(_asked(prompt, system, max_tokens, temperature))

        async def call(port):
            end = await ask(port)
            if "data" not in end:
                raise LLMError(end.get("error") or end.get("refused"))
            return LLMResponse(**end["data"])

        return self._durable.through(call)

    def version(self, name: str) -> Any:
        """True where new code is to run: in jobs that had not come by here before the change named `name`. What it says is recorded."""
        return self._durable.version(name)

    def now(self) -> datetime:
        """The time, as the record has it: that of the latest answer of a call. Inside of a step, that of the clock."""
        return self._durable.now()

    def random(self) -> Random:
        """A generator of random numbers; each attempt of the job gets the same ones."""
        return self._durable.random()

    def uuid(self) -> str:
        """A new id; each attempt of the job gets the same one."""
        return self._durable.uuid()

    @property
    def idempotency_key(self) -> str:
        """A text for services that do a thing once for a key: inside of a step that of the step, outside that of the job. It is the same in each attempt."""
        return self._durable.idempotency_key()

    def _spawned(self, end):
        raise NotImplementedError


def _job(job):
    if isinstance(job, dict):
        known = {"agent", "agent_name", "input", "input_data", "priority", "timeout"}
        if unknown := sorted(set(job) - known):
            raise TypeError(f"spawn_all: a job has no member {unknown[0]!r}; it has agent, input, priority and timeout")
        agent = job.get("agent", job.get("agent_name"))
        given = job.get("input", job.get("input_data", {}))
        return agent, given, job.get("priority", 0), job.get("timeout"), False
    agent, given, *rest = job
    priority, timeout = (*rest, *(0, None)[len(rest) :])
    return agent, given, priority, timeout, False


def _asked(prompt, system, max_tokens, temperature):
    asked = {"system": system, "max_tokens": max_tokens, "temperature": temperature}
    if isinstance(prompt, str):
        return {"prompt": prompt, **asked}
    messages = [{"role": str(message["role"]), "content": str(message["content"])} for message in prompt]
    texts = [message["content"] for message in messages if message["role"] == "system"]
    if texts:
        asked["system"] = "\n\n".join([*([system] if system else []), *texts])
    return {"messages": [message for message in messages if message["role"] != "system"], **asked}
