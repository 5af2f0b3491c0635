"""The interface of every model provider, and the one that the worker is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Awaitable, Callable, Protocol, runtime_checkable


class LLMError(RuntimeError):
    """There is no model, or its call failed; the text begins with the code of the error, if it has one."""


@dataclass
class LLMResponse:
    """A model's answer."""

    text: str
    input_tokens: int = 0
    output_tokens: int = 0
    model: str = ""


@runtime_checkable
class LLMProvider(Protocol):
    """Anything with an async `complete`."""

    async def complete(self, prompt: str, **kwargs) -> LLMResponse: ...


class WorkerProvider:
    """The model of the job, which the worker calls."""

    def __init__(self, model: str, call: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]):
        self.model = model
        self._call = call

    async def complete(
        self, prompt: str, *, system: str | None = None, max_tokens: int | None = None, temperature: float | None = None
    ) -> LLMResponse:
        """One user message, the texts of the answer joined. What is not given is as the contract has it."""
        asked = {"prompt": str(prompt), "system": system, "max_tokens": max_tokens, "temperature": temperature}
        end = await self._call(asked)
        if "data" not in end:
            raise LLMError(end.get("error") or end.get("refused"))
        return LLMResponse(**end["data"])
