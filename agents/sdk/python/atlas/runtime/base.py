"""The base class of every Python agent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class AgentBase(ABC):
    """One instance a slot. `execute` is never called concurrently on one instance; what is on `self` survives between jobs."""

    def __init__(self, contract, context):
        self.contract = contract
        self.context = context

    @abstractmethod
    async def execute(self, input_data: dict[str, Any]) -> dict[str, Any]:
        """Does one job: takes its input, returns its output, raises to fail it."""

    async def on_startup(self) -> None:
        """Runs once, before the first job of the slot."""

    async def on_shutdown(self) -> None:
        """Runs once, when the slot is destroyed; has five seconds."""
