"""How code waits for a call: by `await` on any loop, or by blocking in a thread without one."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from concurrent.futures import Future, ThreadPoolExecutor

THREADS_MAX = 64

_pool = None


def _threads():
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="step")
    return _pool


def _pool_threads():
    return tuple(_pool._threads) if _pool is not None else ()


def drive(coroutine):
    """Runs a coroutine that never waits, because its port blocks instead."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    coroutine.close()
    raise RuntimeError("a call waited in a thread without a loop")


class Call:
    """A call that was begun. `answer` waits for what comes next."""

    def __init__(self, run):
        self.run = run
        self.number = None


class LoopPort:
    """For tasks. `is_home` if their loop is that of the host, where the run lives."""

    def __init__(self, run, loop):
        self._run = run
        self._loop = loop
        self._is_home = loop is run.loop

    async def ask(self, frame):
        """Begins a call and waits for its answer."""
        call = Call(self._run)
        future, waits = self._futures()
        asker = asyncio.current_task() if self._is_home else None  # other loops may have other tasks
        self._on_home(_begin, call, frame, future, asker)
        return call, await self._answer(call, waits, is_step=frame["kind"] == "step")

    async def made(self, call, result):
        """Says how a function ended, and waits for the answer to its call."""
        future, waits = self._futures()
        self._on_home(call.run.made, call.number, result, future)
        return await self._answer(call, waits, is_step="reconciled" in result)

    async def all(self, frames):
        """Several calls at the same time."""
        tasks = [asyncio.ensure_future(self.ask(frame)) for frame in frames]
        try:
            return [answer for _, answer in await asyncio.gather(*tasks)]
        finally:
            for task in tasks:
                task.cancel()

    async def function(self, call, function, args, kwargs, late):
        """Calls a step's function; one that is no coroutine function runs in a thread. If this task is cancelled meanwhile, `late` gets what
        the thread ends with."""
        if inspect.iscoroutinefunction(function):
            with self._run.function():
                return await function(*args, **kwargs)
        context = contextvars.copy_context()
        ends = contextlib.ExitStack()
        ends.enter_context(self._run.function())

        def work():
            with ends:
                return context.run(late.guard, function, args, kwargs)

        running = self._loop.run_in_executor(_threads(), work)
        try:
            value = await asyncio.shield(running)
        except asyncio.CancelledError:
            late.follows = True
            running.add_done_callback(lambda ended: self._on_home(late.ended, call, ended))
            raise
        if not inspect.isawaitable(value):
            return value
        with self._run.function():
            return await value

    def give_up(self, call, over=False):
        """The program no longer waits for a call. `over`: nor does a function of it go on."""
        self._on_home(_forget, call, over)

    def undecided(self, call, text):
        """It is not known whether a step happened, so the run ends."""
        self._on_home(_undecided, call, text)

    def _futures(self):
        if self._is_home:
            future = self._loop.create_future()
            return future, future
        future = Future()
        return future, asyncio.wrap_future(future, loop=self._loop)

    def _on_home(self, function, *arguments):
        if self._is_home:
            function(*arguments)
        else:
            self._run.loop.call_soon_threadsafe(function, *arguments)

    async def _answer(self, call, future, is_step):
        """`is_step`: what is answered may be that a function is to run, which it then will not."""
        try:
            return await future
        except asyncio.CancelledError:
            self.give_up(call, over=is_step)
            raise


class ThreadPort:
    """For threads without a loop: it blocks. Its coroutines never wait."""

    def __init__(self, run):
        self._run = run

    async def ask(self, frame):
        """Begins a call and blocks until its answer."""
        (call, future), = self._begin([frame])
        return call, future.result()

    async def made(self, call, result):
        """Says how a function ended, and blocks until the answer to its call."""
        future = Future()
        self._run.loop.call_soon_threadsafe(call.run.made, call.number, result, future)
        return future.result()

    async def all(self, frames):
        """Several calls at the same time."""
        return [future.result() for _, future in self._begin(frames)]

    async def function(self, _call, function, args, kwargs, late):
        """Calls a step's function in this thread; a coroutine runs on the loop of the agent's process."""
        with self._run.function():
            value = late.guard(function, args, kwargs)
            return self._awaited(value) if inspect.isawaitable(value) else value

    def _awaited(self, value):
        context = contextvars.copy_context()
        future = Future()

        async def wait():
            return await value

        def start():
            task = self._run.loop.create_task(wait(), context=context)
            task.add_done_callback(lambda ended: _copy(ended, future))

        self._run.loop.call_soon_threadsafe(start)
        return future.result()

    def give_up(self, call, over=False):
        """The program no longer waits for a call. `over`: nor does a function of it go on."""
        self._run.loop.call_soon_threadsafe(_forget, call, over)

    def undecided(self, call, text):
        """It is not known whether a step happened, so the run ends."""
        self._run.loop.call_soon_threadsafe(_undecided, call, text)

    def _begin(self, frames):
        asker = threading.current_thread()
        begun = [(Call(self._run), Future()) for _ in frames]
        for frame, (call, future) in zip(frames, begun):
            self._run.loop.call_soon_threadsafe(_begin, call, frame, future, asker)
        return begun


def _begin(call, frame, future, asker):
    call.number = call.run.begin(frame, future, asker, _pool_threads())


def _forget(call, over):
    if call.number is not None:
        call.run.forget(call.number, over)


def _undecided(call, text):
    call.run.undecided(call.number, text)


def _copy(task, future):
    if task.cancelled():
        future.cancel()
    elif (error := task.exception()) is not None:
        future.set_exception(error)
    else:
        future.set_result(task.result())
