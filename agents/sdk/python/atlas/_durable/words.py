"""The errors and values that programs see."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


class NotDurable(RuntimeError):
    """A call of durable agents in an agent that is none."""

    def __init__(self, what: str):
        super().__init__(f"{what} needs a durable agent: add `durable: true` to agent.yaml")


class NestedStep(RuntimeError):
    """A call inside of a step's function: what a step does is one entry of the record, so it can make no entries of its own."""

    def __init__(self, outer: str, inner: str):
        super().__init__(f"{inner} is called inside of step '{outer}'; call it from execute, outside of that step")


class StepFailed(Exception):
    """A step ended with an error, now or in an earlier attempt. `type` and `text` are those of the error; `__cause__` is the error
    itself if it was raised in this process."""

    def __init__(self, name: str, type: str, text: str, *, retry: bool = True):
        super().__init__(f"step '{name}' failed: {type}: {text}" if text else f"step '{name}' failed: {type}")
        self.name = name
        self.type = type
        self.text = text
        self._retry = retry

    def __reduce__(self):
        return _failed, (self.name, self.type, self.text, self._retry)


def _failed(name, type, text, retry):
    return StepFailed(name, type, text, retry=retry)


class Parked(BaseException):
    """The job waits, and its process is needed elsewhere: the run ends here, and a later attempt goes on from the record. Not an
    `Exception`, so that `except Exception` lets it pass; do not catch it."""

    def __init__(self):
        super().__init__("the job is parked")


class Stopped(BaseException):
    """The job cannot go on; the text is its error."""


class _DidNotHappen:
    def __repr__(self):
        return "DID_NOT_HAPPEN"


DID_NOT_HAPPEN = _DidNotHappen()
"""What a `reconcile` function returns if the step did not happen, so that it runs now."""


@dataclass(frozen=True)
class Message:
    """A message to the job."""

    id: str
    sender: str
    at: datetime
    body: Any
