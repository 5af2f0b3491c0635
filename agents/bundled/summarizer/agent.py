"""Cuts a text at a word boundary so that it fits a length."""

from atlas.runtime.base import AgentBase


def fitting(words, length):
    """As many words from the start as fit when they are joined by single spaces."""
    used = 0
    for count, word in enumerate(words):
        used += len(word) + (1 if count else 0)
        if used > length:
            return words[:count]
    return words


class Summarizer(AgentBase):
    async def execute(self, input_data):
        words = fitting(input_data["text"].split(), input_data.get("max_length", 200))
        return {"summary": " ".join(words), "token_count": len(words)}
