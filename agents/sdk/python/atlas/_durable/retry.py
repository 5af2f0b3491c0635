"""How often a step is tried."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta


@dataclass(frozen=True)
class Retry:
    """At most `attempts` tries. Between them the job sleeps: `delay` seconds, `backoff` times as long each time, at most `max_delay`.
    Only errors of the types in `on` are tried again."""

    attempts: int = 3
    delay: float | timedelta = 1.0
    backoff: float = 2.0
    max_delay: float | timedelta = 300.0
    on: tuple[type[BaseException], ...] = (Exception,)

    def __post_init__(self):
        if self.attempts < 1:
            raise ValueError(f"Retry: attempts is {self.attempts}, and has to be at least 1")
        on = (self.on,) if isinstance(self.on, type) else tuple(self.on)
        object.__setattr__(self, "on", on)

    @classmethod
    def of(cls, value) -> Retry:
        """From what `retry=` takes: nothing, a number of attempts, a dictionary, or a `Retry`."""
        if value is None:
            return ONCE
        if isinstance(value, cls):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return cls(attempts=value)
        if isinstance(value, dict):
            known = {field.name for field in fields(cls)}
            if unknown := sorted(set(value) - known):
                raise TypeError(f"retry has no member {unknown[0]!r}; it has {', '.join(sorted(known))}")
            return cls(**value)
        raise TypeError(f"retry is a Retry, a dictionary or a number of attempts, not {type(value).__name__}")

    def pause(self, failed: int) -> float:
        """Seconds before the next try, after `failed` tries."""
        return min(seconds(self.delay) * self.backoff ** (failed - 1), seconds(self.max_delay))


def seconds(value) -> float:
    """A duration in seconds."""
    return value.total_seconds() if isinstance(value, timedelta) else float(value)


ONCE = Retry(attempts=1)
