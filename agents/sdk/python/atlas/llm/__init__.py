"""Models behind one call."""

from atlas.llm.provider import LLMProvider, LLMResponse

__all__ = ["LLMProvider", "LLMResponse"]
