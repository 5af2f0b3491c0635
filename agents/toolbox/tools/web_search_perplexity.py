"""Searches the web with Perplexity."""

import _search


def run(query: str) -> str:
    """Searches the web with Perplexity. Returns an answer with its sources.

    Args:
        query: What to search for
    """
    return _search.perplexity(query)
