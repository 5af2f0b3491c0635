"""Requests to an orchestrator, and its decisions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable


@dataclass
class RoutingDecision:
    """`execute`, `reject` or `redirect`."""

    action: str = "execute"
    agent_name: str | None = None
    priority: int | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@runtime_checkable
class Orchestrator(Protocol):
    """Decides on each job."""

    async def route(self, job, registry) -> RoutingDecision: ...

    async def on_job_complete(self, job) -> None: ...

    async def on_job_failed(self, job) -> None: ...
