"""Calls Atlas from programs: `Client` blocks, `AsyncClient` is for asyncio; both have the same methods."""

from . import _types as types
from ._calls import AsyncBytes, AsyncEvents, Bytes, Events
from ._client import AsyncClient, Client, Reply
from ._core import Policy
from ._errors import (
    AtlasError,
    BadAnswer,
    BadSettings,
    Busy,
    Conflict,
    Denied,
    Gone,
    Internal,
    Invalid,
    JobCancelled,
    JobFailed,
    NoSpace,
    NotFound,
    TookTooLong,
    TooLarge,
    Unavailable,
    Unreachable,
    WaitTimeout,
)
from ._sse import Event

__all__ = [
    "AsyncBytes",
    "AsyncClient",
    "AsyncEvents",
    "AtlasError",
    "BadAnswer",
    "BadSettings",
    "Busy",
    "Bytes",
    "Client",
    "Conflict",
    "Denied",
    "Event",
    "Events",
    "Gone",
    "Internal",
    "Invalid",
    "JobCancelled",
    "JobFailed",
    "NoSpace",
    "NotFound",
    "Policy",
    "Reply",
    "TookTooLong",
    "TooLarge",
    "Unavailable",
    "Unreachable",
    "WaitTimeout",
    "types",
]
