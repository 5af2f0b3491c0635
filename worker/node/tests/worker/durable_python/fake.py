"""A worker for the tests of the Python host: it starts hosts, keeps a record in memory, and answers calls by the rules of durable code.

A test either drives it call by call (`begin`, `call`, `answer`, `end`), or lets it answer by itself (`finish`), which it also does
until a number of steps is recorded, when it kills the host.
"""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

PATIENCE = 120.0
SDK = Path(__file__).resolve().parents[5] / "agents" / "sdk" / "python"
FOLDER = Path(__file__).resolve().parent


class Killed(Exception):
    """The host was killed, as the test wanted."""


class Host:
    """One process of the agent."""

    def __init__(self, folder=FOLDER, **contract):
        reads, self._to = os.pipe()
        self._from, writes = os.pipe()
        environment = {**os.environ, "PYTHONPATH": str(SDK), "PYTHONDONTWRITEBYTECODE": "1", "DURABLE_FDS": f"{reads} {writes}"}
        environment.pop("PYTHONHASHSEED", None)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "atlas._host", str(reads), str(writes)],
            cwd=folder, env=environment, pass_fds=(reads, writes), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        )
        os.close(reads)
        os.close(writes)
        self._stderr = b""
        self._reader = threading.Thread(target=self._read_stderr, daemon=True)
        self._reader.start()
        self._limit = threading.Timer(PATIENCE, self.kill)
        self._limit.daemon = True
        self._limit.start()
        self.said = []
        contract = {"name": "durable", "version": "1.0.0", "durable": True, **contract}
        self.send({"type": "start", "contract": contract, "directory": str(folder), "model": "mock"})
        started = self.receive()
        assert started["type"] == "ready", (started, self.errors())

    def _read_stderr(self):
        self._stderr = self._process.stderr.read()

    def send(self, frame):
        body = json.dumps(frame).encode()
        os.write(self._to, len(body).to_bytes(4, "big") + body)

    def receive(self):
        """The next frame besides log lines, which go to `said`."""
        while True:
            frame = json.loads(self._bytes(int.from_bytes(self._bytes(4), "big")))
            if frame["type"] not in ("log", "progress"):
                return frame
            self.said.append(frame["text"])

    def _bytes(self, count):
        got = b""
        while len(got) < count:
            piece = os.read(self._from, count - len(got))
            assert piece, f"the host ended: {self.errors()}"
            got += piece
        return got

    def errors(self):
        """What the host printed, once it has ended."""
        self.kill()
        return self._stderr.decode()

    def kill(self):
        """As a lost worker does."""
        self._limit.cancel()
        if self._process.returncode is not None:
            return
        try:
            os.killpg(self._process.pid, 9)
        except ProcessLookupError:
            pass
        self._process.wait()
        self._reader.join()
        self._process.stderr.close()

    def wait(self):
        """The code of a host that ends by itself."""
        code = self._process.wait(PATIENCE)
        self._reader.join()
        self._process.stderr.close()
        self._limit.cancel()
        return code

    def close(self):
        self.kill()
        os.close(self._to)
        os.close(self._from)


class Worker:
    """One job. `record` is its journal: `[id, outcome, at_us, alone]` in the order of the ends."""

    def __init__(self, host, given, sends_past=True, beginning=None, **context):
        self.record = []
        self.sends_past = sends_past
        self.runs = 0
        self.effects = []  # functions that ran: the ids of their calls
        self.answers = {}  # values of calls that are no steps, by kind or by `kind:name`
        self.clock = 1_700_000_000_000_000
        self._beginning = beginning or {}  # more members of the frame that begins a run
        self._given, self._context = given, {"job_id": "job-1", "model": "mock", "durable": True, **context}
        self.start_on(host)

    def start_on(self, host):
        """Begins an attempt."""
        self.host = host
        self.runs += 1
        self._old = list(self.record)
        self._delivered = 0
        self._asked = set()
        self._held = []
        self.open = {}
        self.asked = []
        past = []
        for entry in self._old if self.sends_past else ():
            if not entry[3]:
                break
            past.append(entry[:3])
        run = {"type": "run", "number": 100 + self.runs, "input": self._given, "context": self._context, "began_us": 1_600_000_000_000_000}
        self._past = len(past)
        host.send({**run, **self._beginning, **({"past": past} if past else {})})

    # Call by call.

    def frame(self):
        """The next frame of the run."""
        frame = self.host.receive()
        assert frame["number"] == 100 + self.runs, frame
        return frame

    def call(self):
        """The next call."""
        frame = self.frame()
        assert frame["type"] == "call", frame
        self.note(frame)
        return frame

    def note(self, frame):
        """A call is there; others that are open are no longer alone."""
        self.asked.append(frame)
        frame["overlaps"] = bool(self.open)
        for other in self.open.values():
            other["overlaps"] = True
        self.open[frame["call"]] = frame

    def answer(self, frame, **answer):
        """Records the end of a call, and tells it."""
        self.clock += 1_000_000
        self.record.append([frame["id"], answer, self.clock, not frame["overlaps"]])
        self.open.pop(frame["call"], None)
        self.host.send({"type": "called", "call": frame["call"], "at_us": self.clock, **answer})

    def make(self, frame, **more):
        """Tells the program to run the function of a step."""
        self.effects.append(frame["id"])
        self.host.send({"type": "called", "call": frame["call"], "make": True, "key": f"key-{frame['id']}", "again": False, **more})

    def made(self, frame):
        """The end of a function."""
        end = self.frame()
        assert (end["type"], end["call"]) == ("made", frame["call"]), end
        return {name: end[name] for name in ("value", "error", "reconciled") if name in end}

    def end(self):
        """The answer to the run."""
        frame = self.frame()
        assert frame["type"] in ("result", "error", "left"), frame
        return frame

    # By itself.

    def finish(self, kill_after=None):
        """Answers all that is asked. With `kill_after`, kills the host once that many ends are recorded."""
        while True:
            frame = self.frame()
            if frame["type"] == "call":
                self.note(frame)
                self._on_call(frame)
            elif frame["type"] == "made":
                call = self.open.get(frame["call"])
                if call is not None:
                    self.answer(call, **{name: frame[name] for name in ("value", "error") if name in frame})
            elif frame["type"] == "forget":
                pass  # a step that was begun is still recorded
            else:
                return frame
            if kill_after is not None and len(self.record) >= kill_after:
                self.host.close()
                raise Killed

    def _on_call(self, frame):
        unasked = self._old[self._past :] if frame["claimed"] == self._past else self._old[frame["claimed"] :]
        self._unclaimed = unasked
        identity = frame["id"]
        if any(entry[0] == identity for entry in unasked):
            self._asked.add(identity)
            self._replies = getattr(self, "_replies", {})
            self._replies[identity] = frame
            self._give()
            return
        self._held.append(frame)
        self._begin_held(frame)

    def _give(self):
        while self._delivered < len(self._unclaimed) and self._unclaimed[self._delivered][0] in self._asked:
            identity, outcome, at_us, _ = self._unclaimed[self._delivered]
            self._delivered += 1
            frame = self._replies.pop(identity)
            self.open.pop(frame["call"], None)
            self.host.send({"type": "called", "call": frame["call"], "at_us": at_us, **outcome})
        self._begin_held(None)

    def _begin_held(self, latest):
        left = [entry[0] for entry in self._unclaimed if entry[0] not in self._asked]
        if left:
            if latest is not None and latest["alone"]:
                text = f"E3013: {latest['at']} asks for {latest['name']}({latest['given']}), the record has {left[0]}"
                self.host.send({"type": "called", "call": latest["call"], "stop": text})
            return
        held, self._held = self._held, []
        for frame in held:
            if frame["kind"] == "step":
                self.make(frame)
                continue
            value = self.answers.get(f"{frame['kind']}:{frame['name']}", self.answers.get(frame["kind"]))
            self.answer(frame, value=value(frame) if callable(value) else value)


def attempts(given, folder=FOLDER, answers=None, **options):
    """Runs a job without an interruption, and then once more for each of its recorded ends with a host that is killed there. Returns the
    outcomes, records and calls of all."""
    whole = Worker(Host(folder), given, **options)
    whole.answers = answers or {}
    ended = whole.finish()
    whole.host.close()
    outcomes = [(ended, whole)]
    for kept in range(1, len(whole.record) + 1):
        job = Worker(Host(folder), given, **options)
        job.answers = answers or {}
        try:
            ended = job.finish(kill_after=kept)
        except Killed:
            job.start_on(Host(folder))
            ended = job.finish()
        job.host.close()
        outcomes.append((ended, job))
    return outcomes
