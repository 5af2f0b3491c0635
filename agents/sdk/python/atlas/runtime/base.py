"""The base class of every Python agent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class AgentBase(ABC):
    """One instance per slot. `execute` is never called concurrently on one instance; attributes of `self` persist between jobs."""

    def __init__(self, contract, context):
        self.contract = contract
        self.context = context

    @abstractmethod
    async def execute(self, input_data: dict[str, Any]) -> dict[str, Any]:
        """Runs one job: takes its input, returns its output, raises an exception to fail it."""

    async def on_startup(self) -> None:
        """Runs once, before the first job of the slot."""

    async def on_shutdown(self) -> None:
        """Runs once, when the slot is stopped; limited to five seconds."""
