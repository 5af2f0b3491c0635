"""Searches the web with the provider that is configured."""

import _atlas
import _search


def run(query: str) -> str:
    """Searches the web. Returns what was found, with the addresses.

    Args:
        query: What to search for
    """
    url = _atlas.setting("SEARCH_URL")
    if url:
        return _search.server(url, query)
    if _atlas.setting("TAVILY_API_KEY"):
        return _search.tavily(query)
    if _atlas.setting("PERPLEXITY_API_KEY"):
        return _search.perplexity(query)
    _atlas.fail("no search is configured: set the variable search_url, tavily_api_key or perplexity_api_key of the agent")
