"""OpenAI models. The `openai` package is imported when the first provider is made."""

from __future__ import annotations

import os

from atlas.llm.provider import LLMResponse

DEFAULT_MODEL = "gpt-4o-mini"

MODEL_TIERS = {
    "fast": os.environ.get("ATLAS_OPENAI_MODEL_FAST", DEFAULT_MODEL),
    "balanced": os.environ.get("ATLAS_OPENAI_MODEL_BALANCED", DEFAULT_MODEL),
    "powerful": os.environ.get("ATLAS_OPENAI_MODEL_POWERFUL", "gpt-4o"),
}


def model_for_preference(preference: str) -> str:
    """The model of a tier; an unknown one counts as balanced."""
    return MODEL_TIERS.get(preference, MODEL_TIERS["balanced"])


class OpenAIProvider:
    """One user message, the text of the first choice."""

    def __init__(self, api_key: str | None = None, model: str = DEFAULT_MODEL, max_tokens: int = 1024):
        from openai import AsyncOpenAI

        key = api_key or os.environ.get("ATLAS_OPENAI_API_KEY") or os.environ.get("OPENAI_API_KEY")
        self._client = AsyncOpenAI(api_key=key)
        self._model = model
        self._max_tokens = max_tokens

    async def complete(self, prompt: str, **kwargs) -> LLMResponse:
        response = await self._client.chat.completions.create(
            model=kwargs.get("model", self._model),
            max_tokens=kwargs.get("max_tokens", self._max_tokens),
            messages=[{"role": "user", "content": prompt}],
        )
        usage = response.usage
        return LLMResponse(
            response.choices[0].message.content or "",
            usage.prompt_tokens if usage else 0,
            usage.completion_tokens if usage else 0,
            response.model,
        )
