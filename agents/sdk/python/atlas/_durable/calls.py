"""What `self.context` and the decorator of steps call. Each call is a coroutine over a port; in a thread without a loop it runs at once."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import random
import uuid
from datetime import datetime, timezone

from atlas._durable import identity
from atlas._durable.place import caller
from atlas._durable.ports import LoopPort, ThreadPort, drive
from atlas._durable.retry import Retry, seconds
from atlas._durable.words import DID_NOT_HAPPEN, Message, NestedStep, StepFailed, Stopped

EFFECTS = ("pure", "idempotent", "once")
TEXT_CHARS_MAX = 10_000  # of an error
LONGEST_US = 366 * 100 * 24 * 3600 * 1_000_000

# As the channel writes it.
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode

_step = contextvars.ContextVar("atlas_step", default=None)


class _Inside:
    """The step whose function runs."""

    def __init__(self, name, key):
        self.name, self.key, self.drawn = name, key, 0


def inside():
    """The step whose function runs here; none outside of steps."""
    return _step.get()


class Calls:
    """The calls of the agent of this process; `run` is that of the current job."""

    def __init__(self, effects, check_fork, check_own):
        self.run = None
        self._effects = "once" if effects == "reconcilable" else effects or "idempotent"
        self._check_fork = check_fork
        self._check_own = check_own

    # Steps.

    def step(self, name, function, args, kwargs, options, given):
        """A step: in a task something to await, in a thread without a loop its value."""
        self._check(f"step '{name}'")
        function = getattr(function, "__atlas_step__", function)
        place = caller(function)
        if not callable(function):
            raise TypeError(f"step '{name}' takes a function and its arguments, not a {type(function).__name__}; do not call it yourself")
        effects = options.get("effects") or self._effects
        if effects not in EFFECTS:
            raise ValueError(f"step '{name}': effects is {effects!r}, and has to be one of {', '.join(EFFECTS)}")
        retry, reconcile = Retry.of(options.get("retry")), options.get("reconcile")
        frame = {
            **self._head("step", name, list(given), identity.given(*given), place),
            "effects": effects,
            "reconcile": reconcile is not None,
        }
        return self._through(lambda port: self._tries(port, name, frame, (function, args, kwargs), retry, reconcile, place))

    async def _tries(self, port, name, frame, work, retry, reconcile, place):
        failed = 0
        while True:
            try:
                return await self._try(port, name, frame, work, retry, reconcile)
            except StepFailed as error:
                failed += 1
                if failed >= retry.attempts or not error._retry:
                    raise
            await self._sleep(port, retry.pause(failed), place)

    async def _try(self, port, name, frame, work, retry, reconcile):
        call, answer = await port.ask(frame)
        raised = None
        while answer.get("make"):
            function, args, kwargs = work
            looks = bool(answer.get("doubt")) and reconcile is not None
            token = _step.set(_Inside(name, answer.get("key", "")))
            late = _Late(name, retry, looks, self._check_fork)
            try:
                value = await port.function(call, reconcile if looks else function, args, kwargs, late)
                raised = None
            except Exception as error:
                raised = error
            except BaseException:
                port.give_up(call, over=not late.follows)
                raise
            finally:
                _step.reset(token)
            self._check_fork(raised)
            result = _result(name, retry, looks, raised, value if raised is None else None, call.run.value_bytes_max)
            if looks and "error" in result:
                # Nothing is recorded, and a later attempt looks again. The program must not: it would make a step that has perhaps happened.
                text = f"whether step '{name}' happened could not be found out: {result['error']['type']}: {result['error']['text']}"
                port.undecided(call, text)
                raise Stopped(text) from raised
            answer = await port.made(call, result)
        if "error" in answer:
            raise _failure(name, answer["error"]) from raised
        return answer.get("value")

    # Waits.

    def sleep(self, duration):
        """Until `duration` seconds have passed."""
        self._check("sleep")
        place = caller()
        return self._through(lambda port: self._sleep(port, seconds(duration), place))

    async def _sleep(self, port, duration, place):
        if duration <= 0:
            return None
        microseconds = min(round(duration * 1e6), LONGEST_US)
        frame = self._head("sleep", "", {"for_us": microseconds}, f"{duration:g} s", place)
        await self._value(port, {**frame, "for_us": microseconds})

    def until(self, when):
        """Until a time."""
        self._check("until")
        if isinstance(when, datetime):
            if when.tzinfo is None:
                raise ValueError("until: the time has no time zone; give it one, such as datetime(…, tzinfo=timezone.utc)")
            text, when = when.isoformat(), when.timestamp()
        else:
            text = datetime.fromtimestamp(when, timezone.utc).isoformat()
        microseconds = max(0, round(when * 1e6))
        frame = {**self._head("sleep", "", {"until_us": microseconds}, f"until {text}", caller()), "until_us": microseconds}

        async def wait(port):
            await self._value(port, frame)

        return self._through(wait)

    def ask(self, prompt, options, kind, timeout, default):
        """A question to people."""
        self._check("ask")
        question = {"kind": kind or ("choose" if options else "text"), "prompt": str(prompt)}
        if options is not None:
            question["options"] = [str(option) for option in options]
        if timeout is not None:
            question["timeout_us"] = round(seconds(timeout) * 1e6)
        if default is not None:
            question["default"] = default
        frame = {**self._head("ask", question["kind"], question, str(prompt), caller()), "question": question}
        return self._through(lambda port: self._value(port, frame))

    def receive(self, name, timeout):
        """The next message of a channel."""
        self._check("receive")
        frame = self._head("receive", name, [], name, caller())
        if timeout is not None:
            frame["for_us"] = round(seconds(timeout) * 1e6)

        async def wait(port):
            value = await self._value(port, frame)
            if value is None:
                return None
            return Message(value.get("id", ""), value.get("from", ""), _time(value.get("at_us", 0)), value.get("body"))

        return self._through(wait)

    # Other jobs, tools and models.

    def spawned(self, jobs, end):
        """Jobs of other agents, `[(agent, input, priority, timeout, skill)]`, all at the same time; `end` makes of each answer what the caller gets."""
        self._check("spawn")
        place = caller()
        frames = [self._spawn_frame(job, place) for job in jobs]

        async def wait(port):
            if len(frames) == 1:
                return [end(await self._end(port, frames[0]))]
            return [end(_ended(frame, answer)) for frame, answer in zip(frames, await port.all(frames))]

        return wait

    def _spawn_frame(self, job, place):
        agent, input_data, priority, timeout, skill = job
        frame = self._head("spawn", str(agent), [input_data, skill], identity.given([input_data], {}), place)
        limit = None if timeout is None else seconds(timeout)
        return {**frame, "agent": str(agent), "skill": skill, "input": input_data, "priority": int(priority), "timeout": limit}

    def tool(self, name, input_data):
        """A tool of the platform: `{data}`, `{error}` or `{refused}`."""
        self._check(f"tool '{name}'")
        frame = self._head("tool", str(name), input_data, identity.given([input_data], {}), caller())
        return lambda port: self._end(port, {**frame, "tool": str(name), "input": input_data})

    def model(self, asked):
        """A model call of the job: `{data}` or `{error}`."""
        self._check("model")
        frame = self._head("model", "", asked, identity.given([asked.get("prompt")], {}), caller())
        return lambda port: self._end(port, {**frame, "input": asked})

    def version(self, name):
        """True in jobs that have not passed this line before the change."""
        self._check("version")
        frame = self._head("version", str(name), [], "", caller())

        async def ask(port):
            return bool(await self._value(port, frame))

        return self._through(ask)

    # Values that follow from the job.

    def now(self):
        """The time of the latest answer; inside of a step that of the clock."""
        run = self._check("now", within=True)
        return datetime.now(timezone.utc) if inside() else _time(run.now_us)

    def random(self):
        """A generator that is the same in each attempt."""
        return random.Random(self._seed("random"))

    def uuid(self):
        """An id that is the same in each attempt."""
        return str(uuid.UUID(int=random.Random(self._seed("uuid")).getrandbits(128), version=4))

    def idempotency_key(self):
        """That of the step, or else of the job."""
        run = self._check("idempotency_key", within=True)
        step = inside()
        return step.key if step else run.key

    def _seed(self, what):
        run = self._check(what, within=True)
        if (step := inside()) is not None:
            step.drawn += 1
            return f"{step.key}:{step.drawn}"
        return f"{run.seed}:{run.draw()}"

    # What all have in common.

    def through(self, ask):
        """Runs a coroutine over the port of the caller's place."""
        return self._through(ask)

    def _through(self, ask):
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return drive(ask(ThreadPort(self.run)))
        return ask(LoopPort(self.run, loop))

    def _check(self, what, within=False):
        self._check_own()
        step = inside()
        if step is not None and not within:
            raise NestedStep(step.name, what)
        if self.run is None:
            raise RuntimeError(f"{what} is called while no job runs; call it from execute")
        return self.run

    def _head(self, kind, name, arguments, given, place):
        text = given if len(given) <= identity.GIVEN_CHARS_MAX else given[: identity.GIVEN_CHARS_MAX - 1] + "…"
        head = {"kind": kind, "name": _sound(name), "digest": identity.digest(identity.canonical(arguments)), "given": _sound(text)}
        return {**head, "at": _sound(place)}

    async def _value(self, port, frame):
        _, answer = await port.ask(frame)
        if "error" in answer:
            raise _failure(frame["name"] or frame["kind"], answer["error"])
        return answer.get("value")

    async def _end(self, port, frame):
        _, answer = await port.ask(frame)
        return _ended(frame, answer)


class _Late:
    """What a step's thread does after its function, also when nobody waits for it any more."""

    def __init__(self, name, retry, looks, check_fork):
        self._name, self._retry, self._looks, self._check_fork = name, retry, looks, check_fork
        self.follows = False  # the thread goes on, and its end will be told

    def guard(self, function, args, kwargs):
        """Calls it; a process that it forked must not come back from here."""
        try:
            value = function(*args, **kwargs)
        except BaseException as error:
            self._check_fork(error)
            raise
        self._check_fork(None)
        return value

    def ended(self, call, running):
        """The step's thread ended after the program stopped waiting; its end is recorded all the same."""
        result = self._result(running, call.run.value_bytes_max)
        if result is None or self._looks and "error" in result:
            call.run.forget(call.number, over=True)
        else:
            call.run.made(call.number, result, None)

    def _result(self, running, most):
        error = asyncio.CancelledError() if running.cancelled() else running.exception()
        if error is not None:
            return _result(self._name, self._retry, self._looks, error, None, most) if isinstance(error, Exception) else None
        value = running.result()
        if inspect.isawaitable(value):  # that nobody will await
            if inspect.iscoroutine(value):
                value.close()
            return None
        return _result(self._name, self._retry, self._looks, None, value, most)


def _result(name, retry, looks, error, value, most):
    """The end of a function as the worker records it, with a result of at most so many bytes. One that `looks` may have found that the step did
    not happen."""
    if looks and value is DID_NOT_HAPPEN:
        return {"reconciled": "did_not"}
    if error is None:
        try:
            text = _encode(value)
            if "\\ud" in text:
                json.dumps(value, ensure_ascii=False).encode()
            if len(text) <= most:
                return {"value": value}
            text = f"the result of the step '{name}' has {len(text)} bytes, more than {most}; keep it elsewhere, and return where it is"
            return {"error": {"type": "ValueError", "text": _sound(text), "retry": False}}
        except (TypeError, ValueError, RecursionError) as why:  # half of a surrogate pair is a ValueError as well
            text = f"step '{name}' returned what JSON cannot represent ({why}); return dictionaries, lists, texts and numbers"
            return {"error": {"type": "TypeError", "text": _sound(text), "retry": False}}
    try:
        text = str(error)
    except Exception:
        text = ""
    described = {"type": type(error).__name__, "text": _sound(text if len(text) <= TEXT_CHARS_MAX else text[: TEXT_CHARS_MAX - 1] + "…")}
    return {"error": described if isinstance(error, retry.on) else {**described, "retry": False}}


def _failure(name, error):
    return StepFailed(name, error.get("type", "Error"), error.get("text", ""), retry=error.get("retry", True))


def _ended(frame, answer):
    """The answer to a spawn, a tool or a model as `{data}`, `{error}` or `{refused}`."""
    if "error" in answer:
        error = answer["error"]
        return {"error": error.get("text") or error.get("type") if isinstance(error, dict) else str(error)}
    value = answer.get("value")
    return {"data": value} if frame["kind"] == "model" else value


def _time(microseconds):
    return datetime.fromtimestamp(microseconds / 1e6, timezone.utc)


def _sound(text):
    return str(text).encode("utf-8", "replace").decode()
