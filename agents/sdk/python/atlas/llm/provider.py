"""The interface of every model provider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


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
