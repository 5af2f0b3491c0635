"""A durable agent in its host: the runs of its jobs, one after the other."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading

from atlas._durable import current, place, strict
from atlas._durable.calls import Calls
from atlas._durable.run import Run
from atlas._durable.words import Parked, Stopped

# How long what a run has left may take to end, if the worker waits for the answer. If the worker ends the run, it counts itself.
_UNWIND_SECONDS = 0.8
_POLL_SECONDS = 0.02


class Session:
    """Made before the agent is loaded. `check_fork` ends a process that the agent forked and that comes back from the agent's code."""

    def __init__(self, contract, directory, loop, channel, check_fork):
        self._loop = loop
        self._channel = channel
        self._check_fork = check_fork
        self.calls = Calls(contract.get("effects"), check_fork, channel.check_own)
        self.claimed = 0  # how much of what it was sent with the latest run has taken
        self.is_at_work = False  # something of the latest run goes on, so the process can serve no other
        place.belongs_to(directory)
        current.install(self.calls)

    def called(self, frame):
        """The worker answers a call."""
        run = self.calls.run
        if run is not None and not run.ended and frame.get("number", run.number) == run.number:
            run.answered(frame)

    def leave(self, frame):
        """The job is parked: the run ends without a result. One that has ended meanwhile has said so."""
        run = self.calls.run
        if run is not None and not run.ended and frame["number"] == run.number:
            run.refuse()

    @staticmethod
    def ended(error):
        """The answer to a run that had to end; none for an error of the agent."""
        if isinstance(error, Parked):
            return {"type": "left"}
        if isinstance(error, Stopped):
            return {"type": "error", "error": str(error)}
        return None

    async def execute(self, agent, frame):
        """What the agent returns, or what it raises; `Parked` or `Stopped` if the run had to end, whatever the agent made of that."""
        run = self.calls.run = Run(self._loop, frame, self._channel.send, asyncio.current_task())
        watch = strict.Watch(run) if run.strict else None
        try:
            try:
                output = await self._executed(agent, frame["input"], run, watch)
            except BaseException:
                if not run.is_refused or self._channel.is_forked:
                    raise
                output = None
            if run.is_refused:
                run.end()
                await self._unwound(run)
                raise run.refusal()
            return output
        finally:
            if watch is not None:
                watch.end()
            run.end()
            self.claimed = run.claimed
            self.calls.run = None

    async def _unwound(self, run):
        """Nothing of the run goes on: neither tasks nor functions of steps, which must not run beside a later attempt. What does not end in
        time is ended by the worker with this process, or by the host after an answer that only this process knows."""
        for task in run.tasks():
            task.cancel()
        limit = self._loop.time() + _UNWIND_SECONDS
        while run.is_at_work:
            if run.is_undecided and self._loop.time() > limit:
                self.is_at_work = True
                return
            tasks = run.tasks()
            await (asyncio.wait(tasks, timeout=_POLL_SECONDS) if tasks else asyncio.sleep(_POLL_SECONDS))

    async def _executed(self, agent, input_data, run, watch):
        if watch is not None:
            watch.begin()
        if inspect.iscoroutinefunction(agent.execute):
            return await agent.execute(input_data)
        output = await self._in_thread(agent.execute, input_data, run, watch)
        return await output if inspect.isawaitable(output) else output

    async def _in_thread(self, execute, input_data, run, watch):
        """An `execute` without `await`. Its thread cannot be cancelled, so a run that has to end waits for it; the calls that it waits for raise."""
        ended = self._loop.create_future()
        context = contextvars.copy_context()

        def work():
            if watch is not None:
                watch.begin()
            try:
                output, error = context.run(execute, input_data), None
            except BaseException as raised:
                output, error = None, raised
            self._check_fork_after(error)
            self._loop.call_soon_threadsafe(_settle, ended, output, error)

        threading.Thread(target=work, name="execute", daemon=True).start()
        while True:
            try:
                return await asyncio.shield(ended)
            except asyncio.CancelledError:
                if not run.is_refused or ended.done():
                    raise

    def _check_fork_after(self, error):
        if self._channel.is_forked:
            self._check_fork(error)


def _settle(future, output, error):
    if future.done():
        return
    if error is None:
        future.set_result(output)
    else:
        future.set_exception(error)
