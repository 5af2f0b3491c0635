"""The process of one Python slot: `python -m atlas._host READ_FD WRITE_FD`.

Frames go over two descriptors of their own: four bytes of length, most significant first, then JSON. What the agent prints
goes to stdout and stderr, which the worker reads as log lines, so that no print can break the framing.

    worker: start {contract, directory, model | no_model}   run {number, input, context}   spawned {call, data | error | refused}   shutdown
            to durable agents: run also with {past?, began_us?, seed?, value_bytes_max?}   called {call, value | error | make | stop}   leave {number}
    host:   ready   failed {stage, error}   result {number, output, execution_metadata?, keeps?, claimed?}
            error {number, error, execution_metadata?, keeps?}   log {level, text}   progress {text}   stopped
            spawn {number, call, agent, skill, input, priority, timeout}   leave {number, call}   tool {number, call, tool, input}
            model {number, call, input}   delta {number, step, try, text}
            of durable agents instead of spawn, tool and model: call {number, call, id, kind, name, …}   made {number, call, value | error | reconciled}
            forget {number, call, over?}   left {number}
"""

import asyncio
import atexit
import os
import sys
from pathlib import Path

from atlas._channel import Channel, flush, install_logging, print_exception, sound
from atlas._kept import kept


class Host:
    """One agent, one job at a time."""

    def __init__(self, channel, loop):
        self._channel = channel
        self._loop = loop
        self._agent = None
        self._task = None
        self._run = 0
        self._calls = 0
        self._spawned = {}  # futures by call
        self._durable = None  # the session of a durable agent
        self._ended = loop.create_future()

    async def serve(self):
        self._loop.add_reader(self._channel.read_fd, self._readable)
        await self._ended
        self._loop.remove_reader(self._channel.read_fd)

    def _readable(self):
        frames = self._channel.receive()
        if frames is None:
            self._end()
            return
        for frame in frames:
            if (take := self._AT_ONCE.get(frame["type"])) is not None:
                take(self, frame)
                continue
            # Kept in an attribute: the loop itself holds tasks weakly.
            self._task = _start(getattr(self, "_on_" + frame["type"])(frame), self._loop)

    def _end(self):
        if not self._ended.done():
            self._ended.set_result(None)

    async def _on_start(self, frame):
        from atlas.contract.types import AgentContract
        from atlas.runtime.context import AgentContext
        from atlas.runtime.loader import NoImplementation, load_agent_class, load_orchestrator_class

        routes = frame["contract"].get("type") == "orchestrator"
        contract = frame["contract"]
        if contract.get("durable"):
            from atlas._durable.session import Session

            self._durable = Session(contract, frame["directory"], self._loop, self._channel, self._end_if_forked)
        try:
            cls = (load_orchestrator_class if routes else load_agent_class)(Path(frame["directory"]))
        except BaseException as error:  # what importing the agent raises comes as NoImplementation; looking at its classes may raise too
            self._end_if_forked(error.__cause__ or error)
            absent = isinstance(error, NoImplementation) and error.__cause__ is None
            if not absent:
                print_exception(error.__cause__ or error)
            stage = "load" if absent else "import"
            self._channel.send({"type": "failed", "stage": stage, "error": _described(error)})
            return
        try:
            contract = AgentContract.from_dict(frame["contract"])
            context = AgentContext(permissions=contract.permissions)
            context._spawn_callback = self._spawn
            context._tool_callback = self._tool
            context._memory_on = contract.requires.memory
            context._knowledge_on = contract.requires.knowledge.enabled
            context._progress = lambda text: self._channel.send({"type": "progress", "text": sound(text)})
            context._delta = self._delta
            context._model_callback = self._model
            context._model, context._no_model = frame.get("model"), frame.get("no_model") or ""
            if self._durable is not None:
                context._durable = self._durable.calls
            if routes:
                from atlas.orchestrator._calls import Calls

                agent = Calls(cls(), context)
            else:
                agent = cls(contract, context)
                await agent.on_startup()
            self._end_if_forked(None)
        except BaseException as error:
            self._end_if_forked(error)
            print_exception(error)
            self._channel.send({"type": "failed", "stage": "startup", "error": _described(error)})
            return
        self._agent = agent
        flush()
        self._channel.send({"type": "ready"})

    async def _on_run(self, frame):
        number = self._run = frame["number"]
        self._forget_children()
        context = self._agent.context
        bare = {}
        try:
            _set_variables(frame["context"])
            context._begin(frame["context"])
            if self._durable is None:
                output = await self._agent.execute(frame["input"])
            else:
                output = await self._durable.execute(self._agent, frame)
            self._end_if_forked(None)
            answer = {"type": "result", "number": number, "output": output}
            if self._durable is not None:
                answer["claimed"] = self._durable.claimed
        except BaseException as error:
            self._end_if_forked(error)
            answer = {"type": "error", "number": number, "error": _text(error)}
            if self._durable is None or (ended := self._durable.ended(error)) is None:
                print_exception(error)
                bare = _type_if_bare(error)
            else:
                answer = {"number": number, **ended}
        self._forget_children()
        flush()
        # A job must get an answer, also after an error.
        try:
            if metadata := {**_plain(context.execution_metadata), **bare}:
                answer["execution_metadata"] = metadata
            if processes := kept(self._agent):
                answer["keeps"] = processes
            self._channel.send(answer)
        except BaseException as error:
            self._channel.send({"type": "error", "number": number, "error": _text(error)})
        self._run = 0
        if self._durable is not None and self._durable.is_at_work:
            _exit(1)

    def fail(self, error):
        """The loop cannot go on: the run that is waited for fails, because nothing else would answer it."""
        self._end_if_forked(error)
        print_exception(error)
        if self._run:
            name, text = type(error).__name__, _text(error)
            text = f"{name} outside of execute" + (f": {text}" if text else "")
            self._channel.send({"type": "error", "number": self._run, "error": text})

    def _end_if_forked(self, error):
        """Ends a process that the agent forked and that came back from the agent's code: the job's answer is not its own."""
        if not self._channel.is_forked:
            return
        if error is None:
            _complain("a process that the agent forked returned from the agent's code, and what it returned was dropped; end it by os._exit(0)")
            flush()
            os._exit(70)
        if not isinstance(error, SystemExit):
            print_exception(error)
        _exit(_exit_code(error))

    def _delta(self, text, step, attempt):
        """A piece of an answer that forms, for those who follow the job now."""
        frame = {"step": max(0, int(step)), "try": max(1, int(attempt)), "text": sound(text)}
        self._channel.send({"type": "delta", "number": self._run, **frame})

    async def _spawn(self, agent, input_data, priority, timeout, skill=False):
        """Asks the worker for a job of another agent or of a skill, and waits for its end."""
        if asyncio.get_running_loop() is not self._loop:  # that of another thread of the agent
            return await self._from_elsewhere(self._spawn(agent, input_data, priority, timeout, skill))
        self._calls += 1
        number, call, future = self._run, self._calls, self._loop.create_future()
        request = {"agent": sound(str(agent)), "skill": skill, "input": input_data, "priority": int(priority), "timeout": float(timeout)}
        self._channel.send({"type": "spawn", "number": number, "call": call, **request})
        self._spawned[call] = future
        try:
            return await future
        except asyncio.CancelledError:
            if self._spawned.pop(call, None) is not None and number == self._run:
                self._channel.send({"type": "leave", "number": number, "call": call})
            raise

    async def _tool(self, name, input_data):
        """Calls a tool of the platform."""
        if asyncio.get_running_loop() is not self._loop:
            return await self._from_elsewhere(self._tool(name, input_data))
        return await self._ask({"type": "tool", "tool": name, "input": input_data})

    async def _model(self, input_data):
        """Calls the model of the job."""
        if self._durable is not None:
            calls = self._durable.calls
            return await calls.through(calls.model(input_data))
        if asyncio.get_running_loop() is not self._loop:
            return await self._from_elsewhere(self._model(input_data))
        if self._run == 0:
            return {"error": "a model is called while a job runs, which pays for it; no job runs yet"}
        return await self._ask({"type": "model", "input": input_data})

    async def _ask(self, frame):
        """Sends a call that has no end but its answer."""
        self._calls += 1
        call, future = self._calls, self._loop.create_future()
        self._channel.send({**frame, "number": self._run, "call": call})
        self._spawned[call] = future
        try:
            return await future
        finally:
            self._spawned.pop(call, None)

    def _from_elsewhere(self, coroutine):
        if self._channel.is_forked:
            coroutine.close()
        self._channel.check_own()
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    def _on_called(self, frame):
        if self._durable is not None:
            self._durable.called(frame)

    def _on_leave(self, frame):
        if self._durable is not None:
            self._durable.leave(frame)

    def _on_spawned(self, frame):
        future = self._spawned.pop(frame["call"], None)
        if future is not None and not future.done():
            future.set_result(frame)

    def _forget_children(self):
        # Calls of tasks that outlived their job get no answer.
        spawned, self._spawned = self._spawned, {}
        for future in spawned.values():
            future.cancel()

    # What needs no task of its own.
    _AT_ONCE = {"spawned": _on_spawned, "called": _on_called, "leave": _on_leave}

    async def _on_shutdown(self, _frame):
        try:
            if self._agent is not None:
                await self._agent.on_shutdown()
        except BaseException as error:
            print_exception(error)
        flush()
        self._channel.send({"type": "stopped"})
        self._end()


def _start(coroutine, loop):
    # Running up to the first await at once spares most jobs a turn of the loop.
    if sys.version_info >= (3, 12):
        return asyncio.Task(coroutine, loop=loop, eager_start=True)
    # A new task asks its loop for its first step and for nothing else.
    asked, own = [], vars(loop).get("call_soon")
    loop.call_soon = lambda step, *arguments, context=None: asked.append((step, arguments, context))
    try:
        task = asyncio.Task(coroutine, loop=loop)
    finally:
        del loop.call_soon
        if own is not None:  # what the agent has put there
            loop.call_soon = own
    for step, arguments, context in asked:
        context.run(step, *arguments)
    return task


def _set_variables(fields):
    """A slot serves many jobs; the variables that it was started with are those of the first one."""
    os.environ["ATLAS_JOB_ID"] = fields.get("job_id", "")
    for name, value in (("ATLAS_ATTEMPT", fields.get("attempt")), ("TRACEPARENT", fields.get("traceparent"))):
        if value is not None:
            os.environ[name] = str(value)
        elif name in os.environ:
            del os.environ[name]


def _plain(values):
    """The members of a mapping that JSON can represent."""
    if not values or not isinstance(values, dict):
        return {}
    return {sound(str(k)): sound(v) for k, v in values.items() if v is None or isinstance(v, (str, int, float, bool))}


def _text(error):
    """The text of an exception, also if it raises."""
    try:
        return sound(str(error))
    except BaseException:
        return type(error).__name__


def _described(error):
    """The same, after its type where the text alone is unclear."""
    from atlas.runtime.loader import described

    return sound(described(error))


def _type_if_bare(error):
    """The exception's type next to an unclear text; clients of Atlas for Python get only the text."""
    from atlas.runtime.loader import is_bare

    return {"_error_type": type(error).__name__} if is_bare(_text(error), error) else {}


def _exit_code(error):
    """The exit code of a script that ends with an exception."""
    if not isinstance(error, SystemExit):
        return 1
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    _complain(error.code)
    return 1


def _complain(text):
    try:
        print(text, file=sys.stderr)
    except Exception:
        pass  # the agent closed it


def _exit(code):
    """Ends this process as a script ends, but waits for no thread: what the agent left must not keep the slot alive."""
    try:
        atexit._run_exitfuncs()
    except BaseException as error:
        print_exception(error)
    flush()
    os._exit(code)


def main():
    channel = Channel(int(sys.argv[1]), int(sys.argv[2]))
    sys.argv = ["atlas-agent"]
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="replace")
    install_logging(channel)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    host = Host(channel, loop)
    code = 0
    try:
        loop.run_until_complete(host.serve())
    except BaseException as error:  # of a task or of a handler of signals that the agent made
        host.fail(error)
        code = _exit_code(error)
    if executors := sys.modules.get("concurrent.futures.process"):
        executors._python_exit()  # before the exit functions, which wait for the processes of executors
    _exit(code)


if __name__ == "__main__":
    main()
