"""Agents with a single model call: build a prompt, parse the answer."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from atlas.llm.provider import LLMProvider, LLMResponse
from atlas.runtime.base import AgentBase

__all__ = ["LLMAgent", "LLMProvider", "LLMResponse"]


class LLMAgent(AgentBase):
    """`execute` is build, complete, note the tokens, parse.

    The model is the injected one, else that of the job (`self.context.llm`), else one that the agent reaches itself, with a package and a key of
    its own.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._provider: LLMProvider | None = None
        self._started = False

    @abstractmethod
    def build_prompt(self, input_data: dict[str, Any]) -> str:
        """The prompt for one input."""

    @abstractmethod
    def parse_response(self, response: LLMResponse, input_data: dict[str, Any]) -> dict[str, Any]:
        """The output that a model's answer means."""

    async def on_startup(self) -> None:
        self._provider = self.context.providers.get("llm_provider")
        if self._provider is None and self.context._model is None:
            self._provider = self._own_provider()
        self._started = True

    def _create_provider(self) -> LLMProvider:
        from atlas.llm.anthropic import AnthropicProvider, model_for_preference

        return AnthropicProvider(model=model_for_preference(self.contract.model.preference))

    def _own_provider(self) -> LLMProvider:
        try:
            return self._create_provider()
        except ModuleNotFoundError as error:
            need = "list the package in dependencies.packages, or give the job a model"
            raise ModuleNotFoundError(f"{error}; {need}: {self.context._no_model}", name=error.name) from error

    async def execute(self, input_data: dict[str, Any]) -> dict[str, Any]:
        if not self._started:
            raise RuntimeError("LLMAgent not started — on_startup() not called")
        # The next job of the slot may have another model, or none.
        provider = self._provider or (self.context.llm if self.context._model is not None else self._own_provider())
        response = await provider.complete(self.build_prompt(input_data))
        self.context.execution_metadata["input_tokens"] = response.input_tokens
        self.context.execution_metadata["output_tokens"] = response.output_tokens
        self.context.execution_metadata["model"] = response.model
        return self.parse_response(response, input_data)
