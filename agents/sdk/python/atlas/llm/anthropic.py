"""Claude models. The `anthropic` package is imported when the first provider is made."""

from __future__ import annotations

import os

from atlas.llm.provider import LLMResponse

DEFAULT_MODEL = "claude-sonnet-4-20250514"

MODEL_TIERS = {
    "fast": os.environ.get("ATLAS_MODEL_FAST", "claude-haiku-4-5-20251001"),
    "balanced": os.environ.get("ATLAS_MODEL_BALANCED", DEFAULT_MODEL),
    "powerful": os.environ.get("ATLAS_MODEL_POWERFUL", DEFAULT_MODEL),
}


def model_for_preference(preference: str) -> str:
    """The model of a tier; an unknown one counts as balanced."""
    return MODEL_TIERS.get(preference, MODEL_TIERS["balanced"])


class AnthropicProvider:
    """One user message, the text blocks of the answer joined."""

    def __init__(self, api_key: str | None = None, model: str = DEFAULT_MODEL, max_tokens: int = 1024):
        from anthropic import AsyncAnthropic

        key = api_key or os.environ.get("ATLAS_API_KEY") or os.environ.get("ANTHROPIC_API_KEY")
        self._client = AsyncAnthropic(api_key=key)
        self._model = model
        self._max_tokens = max_tokens

    async def complete(self, prompt: str, **kwargs) -> LLMResponse:
        response = await self._client.messages.create(
            model=kwargs.get("model", self._model),
            max_tokens=kwargs.get("max_tokens", self._max_tokens),
            messages=[{"role": "user", "content": prompt}],
        )
        text = "".join(block.text for block in response.content if getattr(block, "type", "") == "text")
        return LLMResponse(text, response.usage.input_tokens, response.usage.output_tokens, response.model)
