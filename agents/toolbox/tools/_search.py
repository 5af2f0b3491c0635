"""Providers of searches. Their keys are secrets: variables of the agent with the value {{NAME}}."""

import json
import urllib.parse

import _atlas
import _web


def answer(url, body=None, key=None):
    headers = {"Accept": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    data = None
    if body is not None:
        headers["Content-Type"] = "application/json"
        data = json.dumps(body).encode()
    _, found, _ = _web.fetch(url, data, headers, configured=True, seconds=60)
    try:
        found = json.loads(found)
    except ValueError as error:
        _atlas.fail(f"the search answered with something that is not JSON: {error}")
    if not isinstance(found, dict):
        _atlas.fail("the search answered in an unknown form")
    return found


def listed(results, text):
    """Results with their addresses."""
    results = [one for one in results if isinstance(one, dict)] if isinstance(results, list) else []
    texts = [f"# {one.get('title') or ''}\n{one.get('url') or ''}\n{str(one.get(text) or '')[:2000]}" for one in results[:10]]
    return "\n\n".join(texts)


def key(name):
    found = _atlas.setting(name)
    if not found:
        _atlas.fail(f'no key is configured: give the agent a variable {name.lower()} with the value "{{{{{name}}}}}", and set that secret')
    return found


def tavily(query):
    url = _atlas.setting("TAVILY_URL", "https://api.tavily.com/search")
    found = answer(url, {"query": query[:400], "include_answer": True, "max_results": 5}, key("TAVILY_API_KEY"))
    parts = [str(found.get("answer") or ""), listed(found.get("results"), "content")]
    return _atlas.cut("\n\n".join(part for part in parts if part)) or "(nothing was found)"


def perplexity(query):
    url = _atlas.setting("PERPLEXITY_URL", "https://api.perplexity.ai/chat/completions")
    model = _atlas.setting("PERPLEXITY_WEB_SEARCH_MODEL", "sonar")
    body = {"model": model, "messages": [{"role": "user", "content": query[:4000]}]}
    found = answer(url, body, key("PERPLEXITY_API_KEY"))
    try:
        text = found["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        _atlas.fail("the search answered in an unknown form")
    sources = [str(one) for one in found.get("citations") or [] if isinstance(one, str)]
    return _atlas.cut(str(text)) + _atlas.cut("".join(f"\n[{number}] {source}" for number, source in enumerate(sources[:20], 1)))


def server(url, query):
    """A server with the API of SearXNG."""
    found = answer(f"{url}{'&' if '?' in url else '?'}{urllib.parse.urlencode({'q': query[:400], 'format': 'json'})}")
    return _atlas.cut(listed(found.get("results"), "content")) or "(nothing was found)"
