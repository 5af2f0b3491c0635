"""What can go wrong, as exceptions. Each has the code of its page in the reference of errors."""

from __future__ import annotations

from typing import Any

from ._codes import CODES


class AtlasError(Exception):
    """A request or a job that failed."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        status: int = 0,
        hint: str = "",
        retryable: bool | None = None,
        retry_after: float | None = None,
        places: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        #: `E` and four digits; empty if the server named none.
        self.code = code
        #: The HTTP status; 0 if there was no answer.
        self.status = status
        #: What to try.
        self.hint = hint
        #: Whether the cause can pass, so that the same request may succeed later.
        self.retryable = CODES.get(code, ("", "", False))[2] if retryable is None else retryable
        #: Seconds until a repeat may succeed, if the server said so.
        self.retry_after = retry_after
        #: What is wrong in an input: `pointer`, `rule` and `message` of each place.
        self.places = places or []

    def __str__(self) -> str:
        text = f"{self.code}: {self.message}" if self.code else self.message
        for place in self.places[:8]:
            text += f"\n  {place.get('pointer') or '/'}: {place.get('message', '')}"
        return f"{text}\n  {self.hint}" if self.hint else text


class Invalid(AtlasError):
    """The request is malformed or breaks a contract: change it."""


class NotFound(AtlasError):
    """No object has that name."""


class Conflict(AtlasError):
    """It exists with other content, or was changed meanwhile."""


class Busy(AtlasError):
    """A limit is reached: try again later."""


class Denied(AtlasError):
    """Refused by a policy, or a right is missing."""


class TooLarge(AtlasError):
    """The request is too large."""


class Unavailable(AtlasError):
    """There is no leader, or the cluster cannot do this now: try again."""


class TookTooLong(AtlasError):
    """The time given has passed."""


class NoSpace(AtlasError):
    """The disk of the cluster is nearly full."""


class Gone(AtlasError):
    """It existed and has been dropped."""


class Internal(AtlasError):
    """A fault of Atlas."""


class Unreachable(Unavailable):
    """No controller answered (E4002), or its certificate is not accepted (E4013)."""


class BadAnswer(AtlasError):
    """An answer that does not follow the interface, or is larger than the client reads (E4005)."""


class BadSettings(AtlasError):
    """The address, the token or the file of contexts cannot be used."""


class WaitTimeout(AtlasError):
    """The deadline of a wait has passed. The job goes on: `job_id` can be waited for again."""

    def __init__(self, job_id: str, seconds: float) -> None:
        super().__init__(f"{job_id} has not ended within {round(seconds, 1):g} s; it goes on", retryable=True)
        self.job_id = job_id


class JobFailed(AtlasError):
    """A job failed, and so did its retries. `code` is that of the job's error."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.job_id = text_of(job, "id")
        self.failure_kind = text_of(job, "failure_kind")
        code = text_of(job, "error_code")
        what = text_of(job, "error").removeprefix(f"{code}: ") or "it says no reason"
        super().__init__(f"{self.job_id} failed: {what}", code=code)


class JobCancelled(AtlasError):
    """A job was cancelled."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.job_id = text_of(job, "id")
        super().__init__(f"{self.job_id} was cancelled")


KINDS: dict[str, type[AtlasError]] = {
    "invalid": Invalid,
    "not_found": NotFound,
    "conflict": Conflict,
    "busy": Busy,
    "denied": Denied,
    "too_large": TooLarge,
    "unavailable": Unavailable,
    "timeout": TookTooLong,
    "no_space": NoSpace,
    "gone": Gone,
    "internal": Internal,
}

#: For codes that this client does not know, and answers without one.
BY_STATUS = {
    400: "invalid",
    401: "denied",
    403: "denied",
    404: "not_found",
    405: "invalid",
    408: "timeout",
    409: "conflict",
    410: "gone",
    413: "too_large",
    429: "busy",
    500: "internal",
    502: "unavailable",
    503: "unavailable",
    504: "timeout",
    507: "no_space",
}

#: Statuses whose cause can pass if the code does not say.
PASSING = (429, 502, 503, 504)


def refusal(status: int, headers: dict[str, str], body: Any) -> AtlasError:
    """The exception of an answer that is no success. The body may be anything."""
    problem = body if isinstance(body, dict) else {}
    code = text_of(problem, "code") or headers.get("atlas-error-code", "")
    texts = (text_of(problem, name) for name in ("detail", "message", "error", "title"))
    message = next((text for text in texts if text), f"the server answered {status}")
    title, kind, passes = CODES.get(code, ("", BY_STATUS.get(status, ""), status in PASSING))
    if not kind:
        kind = "invalid" if 400 <= status < 500 else "internal"
    places = problem.get("errors")
    places = [place for place in places if isinstance(place, dict)] if isinstance(places, list) else []
    after = seconds_of(problem.get("retry_after_s"))
    return KINDS[kind](
        message[:4096],
        code=code[:16],
        status=status,
        hint=text_of(problem, "hint")[:4096],
        retryable=passes,
        retry_after=seconds_of(headers.get("retry-after")) if after is None else after,
        places=places,
    )


def text_of(value: Any, name: str) -> str:
    """A member that is a text; empty if it is none."""
    member = value.get(name) if isinstance(value, dict) else None
    return member if isinstance(member, str) else ""


def seconds_of(value: Any) -> float | None:
    """A number of seconds as servers write it; none if it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        return None
    return seconds if 0 <= seconds < 1e9 else None
