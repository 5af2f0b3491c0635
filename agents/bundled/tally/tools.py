"""The tools of the agent. Each function is one tool; its signature and its docstring are what the model is told."""

from collections import Counter


def count_words(text: str) -> int:
    """Counts the words of a text.

    Args:
        text: The text.
    """
    return len(text.split())


def most_frequent(text: str, top: int = 3) -> list[str]:
    """Returns the most frequent words of a text, the most frequent one first.

    Args:
        text: The text.
        top: How many words.
    """
    return [word for word, _ in Counter(text.lower().split()).most_common(top)]
