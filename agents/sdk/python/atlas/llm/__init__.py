"""Models behind one call."""

from atlas.llm.provider import LLMError, LLMProvider, LLMResponse

__all__ = ["LLMError", "LLMProvider", "LLMResponse"]
