"""The process of one Python slot: `python -m atlas._host READ_FD WRITE_FD`.

Frames go over two descriptors of their own: four bytes of length, most significant first, then JSON. What the agent prints
goes to stdout and stderr, which the worker reads as log lines, so that no print can break the framing.

    worker: start {contract, directory}   run {number, input, context}   spawned {call, data | error | refused}   shutdown
    host:   ready   failed {stage, error}   result {number, output, execution_metadata}
            error {number, error, execution_metadata}   log {level, text}   progress {text}   stopped
            spawn {number, call, agent, skill, input, priority, timeout}   leave {number, call}   tool {number, call, tool, input}   delta {number, step, try, text}
"""

import asyncio
import json
import os
import sys
import threading
from pathlib import Path

_HEADER = 4
_READ_BYTES = 16 << 10

# Made once: `json.dumps` with options makes an encoder a call.
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_decode = json.JSONDecoder().decode


class Channel:
    """Frames in and out. Writes block, because frames are small and the worker always reads."""

    def __init__(self, read_fd, write_fd):
        for fd in (read_fd, write_fd):
            os.set_inheritable(fd, False)
        self.read_fd = read_fd
        self._write_fd = write_fd
        self._buffer = bytearray()
        self._pid = os.getpid()
        # Threads log while a job answers. Reentrant: a signal's handler may log as well.
        self._lock = threading.RLock()

    def receive(self):
        """The received frames; none at the end of the stream."""
        chunk = os.read(self.read_fd, _READ_BYTES)
        if not chunk:
            return None
        if not self._buffer and len(chunk) - _HEADER == int.from_bytes(chunk[:_HEADER], "big"):
            return [_decode(chunk[_HEADER:].decode())]  # one whole frame, as nearly always
        self._buffer += chunk
        frames = []
        while len(self._buffer) >= _HEADER:
            length = int.from_bytes(self._buffer[:_HEADER], "big")
            if len(self._buffer) < _HEADER + length:
                break
            frames.append(_decode(self._buffer[_HEADER : _HEADER + length].decode()))
            del self._buffer[: _HEADER + length]
        return frames

    def send(self, frame):
        """Writes one complete frame. Values that JSON does not have raise before a byte is written."""
        if os.getpid() != self._pid:
            os._exit(70)  # a child that the agent forked: the frames are its parent's
        body = _encode(frame).encode()
        rest = len(body).to_bytes(_HEADER, "big") + body
        with self._lock:
            written = os.write(self._write_fd, rest)
            rest = memoryview(rest)
            while written < len(rest):
                written += os.write(self._write_fd, rest[written:])


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
            if frame["type"] == "spawned":
                self._on_spawned(frame)
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
        try:
            cls = (load_orchestrator_class if routes else load_agent_class)(Path(frame["directory"]))
        except BaseException as error:  # what importing the agent raises comes as NoImplementation; looking at its classes may raise too
            absent = isinstance(error, NoImplementation) and error.__cause__ is None
            if not absent:
                _print_exception(error.__cause__ or error)
            stage = "load" if absent else "import"
            self._channel.send({"type": "failed", "stage": stage, "error": _described(error)})
            return
        try:
            contract = AgentContract.from_dict(frame["contract"])
            context = AgentContext(permissions=contract.permissions)
            context._spawn_callback = self._spawn
            context._tool_callback = self._tool
            context._progress = lambda text: self._channel.send({"type": "progress", "text": _sound(text)})
            context._delta = self._delta
            if routes:
                from atlas.orchestrator._calls import Calls

                agent = Calls(cls(), context)
            else:
                agent = cls(contract, context)
                await agent.on_startup()
        except BaseException as error:
            _print_exception(error)
            self._channel.send({"type": "failed", "stage": "startup", "error": _described(error)})
            return
        self._agent = agent
        _flush()
        self._channel.send({"type": "ready"})

    async def _on_run(self, frame):
        number = self._run = frame["number"]
        self._forget_children()
        context = self._agent.context
        bare = {}
        try:
            _set_variables(frame["context"])
            context._begin(frame["context"])
            output = await self._agent.execute(frame["input"])
            answer = {"type": "result", "number": number, "output": output}
        except BaseException as error:
            _print_exception(error)
            answer = {"type": "error", "number": number, "error": _text(error)}
            bare = _type_if_bare(error)
        self._forget_children()
        _flush()
        # A job must get an answer, also after an error.
        try:
            self._channel.send({**answer, "execution_metadata": {**_plain(context.execution_metadata), **bare}})
        except BaseException as error:
            self._channel.send({"type": "error", "number": number, "error": _text(error)})

    def _delta(self, text, step, attempt):
        """A piece of an answer that forms, for those who follow the job now."""
        frame = {"step": max(0, int(step)), "try": max(1, int(attempt)), "text": _sound(text)}
        self._channel.send({"type": "delta", "number": self._run, **frame})

    async def _spawn(self, agent, input_data, priority, timeout, skill=False):
        """Asks the worker for a job of another agent or of a skill, and waits for its end."""
        self._calls += 1
        number, call, future = self._run, self._calls, self._loop.create_future()
        request = {"agent": _sound(str(agent)), "skill": skill, "input": input_data, "priority": int(priority), "timeout": float(timeout)}
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
        self._calls += 1
        call, future = self._calls, self._loop.create_future()
        self._channel.send({"type": "tool", "number": self._run, "call": call, "tool": name, "input": input_data})
        self._spawned[call] = future
        try:
            return await future
        finally:
            self._spawned.pop(call, None)

    def _on_spawned(self, frame):
        future = self._spawned.pop(frame["call"], None)
        if future is not None and not future.done():
            future.set_result(frame)

    def _forget_children(self):
        # Calls of tasks that outlived their job get no answer.
        spawned, self._spawned = self._spawned, {}
        for future in spawned.values():
            future.cancel()

    async def _on_shutdown(self, _frame):
        try:
            if self._agent is not None:
                await self._agent.on_shutdown()
        except BaseException as error:
            _print_exception(error)
        _flush()
        self._channel.send({"type": "stopped"})
        self._end()


def _start(coroutine, loop):
    # Running up to the first await at once spares most jobs a turn of the loop.
    if sys.version_info >= (3, 12):
        return asyncio.Task(coroutine, loop=loop, eager_start=True)
    return loop.create_task(coroutine)


def _set_variables(fields):
    """A slot serves many jobs; the variables that it was started with are those of the first one."""
    os.environ["ATLAS_JOB_ID"] = fields.get("job_id", "")
    for name, value in (("ATLAS_ATTEMPT", fields.get("attempt")), ("TRACEPARENT", fields.get("traceparent"))):
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = str(value)


def _plain(values):
    """The members of a mapping that JSON can represent."""
    if not values or not isinstance(values, dict):
        return {}
    return {_sound(str(k)): _sound(v) for k, v in values.items() if v is None or isinstance(v, (str, int, float, bool))}


def _sound(value):
    """Text without lone surrogates, which many JSON readers refuse."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _text(error):
    """The text of an exception, also if it raises."""
    try:
        return _sound(str(error))
    except BaseException:
        return type(error).__name__


def _described(error):
    """The same, after its type where the text alone is unclear."""
    from atlas.runtime.loader import described

    return _sound(described(error))


def _type_if_bare(error):
    """The exception's type next to an unclear text; clients of Atlas for Python get only the text."""
    from atlas.runtime.loader import is_bare

    return {"_error_type": type(error).__name__} if is_bare(_text(error), error) else {}


def _flush():
    # Before the answer: the worker takes what is in the pipes when it has the answer, and nothing after.
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # the agent closed it, or put something else in its place


def _print_exception(error):
    import traceback

    try:
        traceback.print_exception(error, file=sys.stderr)
    except Exception:
        pass  # the same


class _LogHandler:
    """Created lazily, because `logging` is imported by agents that log and by asyncio anyway."""

    @staticmethod
    def install(channel):
        import logging

        class Handler(logging.Handler):
            def emit(self, record):
                try:
                    level = record.levelname.lower()
                    channel.send({"type": "log", "level": level, "text": _sound(self.format(record))})
                except Exception:
                    self.handleError(record)

        root = logging.getLogger()
        root.addHandler(Handler())
        root.setLevel(logging.INFO)


def main():
    channel = Channel(int(sys.argv[1]), int(sys.argv[2]))
    sys.argv = ["atlas-agent"]
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="replace")
    _LogHandler.install(channel)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(Host(channel, loop).serve())
    # Threads and tasks that the agent left do not keep the slot alive.
    _flush()
    os._exit(0)


if __name__ == "__main__":
    main()
