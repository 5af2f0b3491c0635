"""The calls of one run, on the loop of the agent's process: their numbers, what is answered, and the end of a run that is parked."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import threading
from collections import Counter, deque

from atlas._durable.words import Parked, Stopped

# Turns of the loop between two answers, if a program never becomes quiet or the loop does not say.
_TURNS_MAX = 200
_TURNS_UNKNOWN = 16

# Calls that the worker has at the same time; it refuses more than 1,024. The others wait here.
_OPEN_MAX = 1_000


class Run:
    """One attempt at a job. All methods are called on the loop.

    Answers reach the program one at a time, in the order in which the worker gives them, which is that of the record. Between two the
    program runs until it waits again. So a program that takes the first of several ends sees the same one in each attempt.
    """

    def __init__(self, loop, frame, send, main):
        self.loop = loop
        self.number = frame["number"]
        job = str(frame["context"].get("job_id", ""))
        self.seed = str(frame.get("seed", job))
        self.now_us = int(frame.get("began_us") or 0)
        # From the record and not from the id of the job: a job that resumes another one has its record, and another id.
        self.key = hashlib.sha256(f"{self.seed}:{self.now_us}".encode()).hexdigest()[:32]
        self.value_bytes_max = frame.get("value_bytes_max", 8 << 20)
        self.strict = frame["context"].get("replay") == "strict"
        self.ended = False
        self._send = send
        self._main = main
        self._past = deque(frame.get("past") or ())
        self.claimed = 0  # calls of what the job was sent with that the program has made
        self._calls = 0
        self._equal = Counter()
        self._open = {}  # futures by the number of the call
        self._sent = set()  # numbers of calls that the worker has
        self._queued = {}  # calls that it does not have yet, by their numbers
        self._arrived = deque()
        self._settling = False
        self._turns = 0
        self._drawn = 0
        self._refusal = None  # class and arguments of what each call raises, once the run has to end
        self.is_undecided = False  # it ends because of a step that perhaps happened; the worker does not know yet
        self._functions = 0  # of steps, that run now, also if the program no longer waits for them
        self._counts = threading.Lock()
        self._tasks_before = set(asyncio.all_tasks(loop)) | {main}
        self._threads_before = set(threading.enumerate())

    # What programs ask.

    def begin(self, call, future, asker, pool=()):
        """Begins a call; `future` gets its answer. `asker` is the task or thread that waits for it."""
        if self._refused(future):
            return None
        identity = ":".join((call["kind"], call["name"], call["digest"]))
        identity += f":{self._equal[identity] + 1}"
        number = self._calls + 1
        alone = self._is_alone(asker, pool)
        answer = self._recorded(identity)
        if answer is None:
            frame = {"type": "call", "number": self.number, "call": number, "id": identity, "alone": alone, **call}
            if len(self._sent) >= _OPEN_MAX:
                self._queued[number] = frame
            else:
                try:
                    self._send_call(frame)
                except Exception as error:  # a value that JSON does not have
                    future.set_exception(error)
                    return None
        self._calls = number
        self._equal[identity.rpartition(":")[0]] += 1
        self._open[number] = future
        if answer is not None:
            answer = {"call": number, **answer}
            if alone:
                self._deliver(answer)
            else:
                self.answered(answer)
        return number

    def made(self, number, result, future):
        """The end of a function that the worker asked for; `future` gets the answer to the call."""
        if future is not None and self._refused(future):
            return
        if self.ended:
            return
        if future is not None:
            self._open[number] = future
        self._send({"type": "made", "number": self.number, "call": number, **result})

    @contextlib.contextmanager
    def function(self):
        """While the function of a step runs, in whatever thread."""
        with self._counts:
            self._functions += 1
        try:
            yield
        finally:
            with self._counts:
                self._functions -= 1

    @property
    def is_at_work(self):
        """True while tasks of the run go on, or functions of its steps."""
        return self._functions > 0 or bool(self.tasks())

    def forget(self, number, over=False):
        """The program no longer waits for a call. `over`: it is a step, and `made` will not follow."""
        self._open.pop(number, None)
        if self._queued.pop(number, None) is not None:
            return
        if not self.ended and self._refusal is None:
            self._send_forget(number, over)
        self._over(number)

    def _send_forget(self, number, over):
        self._send({"type": "forget", "number": self.number, "call": number, **({"over": True} if over else {})})

    def _send_call(self, frame):
        self._send({**frame, "claimed": self.claimed})
        self._sent.add(frame["call"])

    def _over(self, number):
        """The worker no longer has a call, and takes another one."""
        self._sent.discard(number)
        while self._queued and len(self._sent) < _OPEN_MAX and not self.ended:
            waiting = next(iter(self._queued))
            frame = self._queued.pop(waiting)
            try:
                self._send_call(frame)
            except Exception as error:  # the same
                self._open.pop(waiting).set_exception(error)

    def draw(self):
        """The next number for values that only look random."""
        self._drawn += 1
        return self._drawn

    def _recorded(self, identity):
        """The answer to a call that the job was sent with. The first call out of their order ends this: the worker knows the rest."""
        if not self._past:
            return None
        recorded, outcome, at_us = self._past[0]
        if recorded != identity:
            self._past.clear()
            return None
        self._past.popleft()
        self.claimed += 1
        return {**outcome, "at_us": at_us}

    def _is_alone(self, asker, pool):
        """True if nothing of the program runs or waits besides the asker. When in doubt it is false, which only costs time."""
        if asker is None:
            return False
        tasks = set(asyncio.all_tasks(self.loop)) - self._tasks_before
        threads = set(threading.enumerate()) - self._threads_before - set(pool)
        return not tasks - {asker} and not threads - {asker} and not self._open

    # What the worker answers.

    def answered(self, frame):
        """Takes an answer, and passes it on as soon as the program waits."""
        if "stop" in frame:
            self.refuse(Stopped, frame["stop"])
            return
        self._arrived.append(frame)
        if not self._settling:
            self._settling = True
            self._next()

    def _next(self):
        self._turns = 0
        self._deliver(self._arrived.popleft())
        self.loop.call_soon(self._settle)

    def _settle(self):
        ready = getattr(self.loop, "_ready", None)
        self._turns += 1
        is_busy = self._turns < _TURNS_UNKNOWN if ready is None else bool(ready) and self._turns < _TURNS_MAX
        if is_busy:
            self.loop.call_soon(self._settle)
        elif self._arrived and not self.ended:
            self._next()
        else:
            self._settling = False

    def _deliver(self, frame):
        self.now_us = max(self.now_us, int(frame.get("at_us") or 0))
        future = self._open.pop(frame["call"], None)
        if not frame.get("make"):
            self._over(frame["call"])
        elif future is None and not self.ended and self._refusal is None:
            self._send_forget(frame["call"], over=True)  # nobody runs it any more
        if future is not None and not future.done():
            future.set_result(frame)

    # How a run ends.

    def refuse(self, kind=Parked, *arguments):
        """Ends the run: what waits for a call gets the exception, and so does each further call."""
        if self._refusal is not None:
            return
        self._refusal = (kind, arguments)
        self._queued.clear()
        waiting, self._open = self._open, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(self.refusal())
        self._arrived.clear()
        self.loop.call_soon(self._unwind, 0)

    def undecided(self, number, text):
        """Ends the run: it is not known whether a step happened. Nothing of that is recorded."""
        if self.ended or self._refusal is not None:
            return
        self.is_undecided = True
        self._send_forget(number, over=True)
        self.refuse(Stopped, text)

    @property
    def is_refused(self):
        """True once the run has to end without a result."""
        return self._refusal is not None

    def refusal(self):
        """What ends it."""
        kind, arguments = self._refusal
        return kind(*arguments)

    def _refused(self, future):
        if self._refusal is None and not self.ended:
            return False
        future.set_exception(self.refusal() if self._refusal else RuntimeError("the job has ended; its calls are over"))
        return True

    def _unwind(self, turn):
        """Cancels the tasks of the run that wait for something else than a call."""
        if self.ended:
            return
        if getattr(self.loop, "_ready", None) and turn < _TURNS_MAX:
            self.loop.call_soon(self._unwind, turn + 1)
            return
        for task in self.tasks():
            task.cancel()
        if not self._main.done():
            self._main.cancel()

    def tasks(self):
        """The tasks that the run has begun and that still run."""
        return [task for task in asyncio.all_tasks(self.loop) if task not in self._tasks_before]

    def end(self):
        """The run has its answer. What still waits for a call, such as a task that the agent keeps, waits for nothing."""
        self.ended = True
        waiting, self._open = self._open, {}
        for future in waiting.values():
            future.cancel()
