"""Agents with a single model call: build a prompt, parse the answer."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from atlas.llm.provider import LLMProvider, LLMResponse
from atlas.runtime.base import AgentBase

__all__ = ["LLMAgent", "LLMProvider", "LLMResponse"]


class LLMAgent(AgentBase):
    """`execute` is build, complete, note the tokens, parse."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._provider: LLMProvider | None = None

    @abstractmethod
    def build_prompt(self, input_data: dict[str, Any]) -> str:
        """The prompt for one input."""

    @abstractmethod
    def parse_response(self, response: LLMResponse, input_data: dict[str, Any]) -> dict[str, Any]:
        """The output that a model's answer means."""

    async def on_startup(self) -> None:
        self._provider = self.context.providers.get("llm_provider") or self._create_provider()

    def _create_provider(self) -> LLMProvider:
        from atlas.llm.anthropic import AnthropicProvider, model_for_preference

        return AnthropicProvider(model=model_for_preference(self.contract.model.preference))

    async def execute(self, input_data: dict[str, Any]) -> dict[str, Any]:
        if self._provider is None:
            raise RuntimeError("LLMAgent not started — on_startup() not called")
        response = await self._provider.complete(self.build_prompt(input_data))
        self.context.execution_metadata["input_tokens"] = response.input_tokens
        self.context.execution_metadata["output_tokens"] = response.output_tokens
        self.context.execution_metadata["model"] = response.model
        return self.parse_response(response, input_data)
