"""Searches the web with Tavily."""

import _search


def run(query: str) -> str:
    """Searches the web with Tavily. Returns an answer with its sources.

    Args:
        query: What to search for
    """
    return _search.tavily(query)
