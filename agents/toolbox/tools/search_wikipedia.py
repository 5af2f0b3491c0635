"""Searches Wikipedia."""

import json
import urllib.parse

import _atlas
import _web


def run(query: str) -> str:
    """Searches Wikipedia. Returns the introductions of the articles that fit best, with their addresses.

    Args:
        query: What to search for
    """
    base = _atlas.setting("WIKIPEDIA_URL", "https://en.wikipedia.org/w/api.php")
    words = {
        "action": "query", "format": "json", "generator": "search", "gsrsearch": query[:300], "gsrlimit": 3, "prop": "extracts|info",
        "exintro": 1, "explaintext": 1, "exlimit": 3, "inprop": "url",
    }
    _, body, _ = _web.fetch(f"{base}?{urllib.parse.urlencode(words)}", configured=True)
    try:
        pages = json.loads(body).get("query", {}).get("pages", {}).values()
        pages = sorted(pages, key=lambda page: page.get("index", 0))
        texts = [f"# {page['title']}\n{page.get('fullurl', '')}\n{(page.get('extract') or '').strip()[:4000]}" for page in pages]
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        _atlas.fail(f"Wikipedia answered in an unknown form: {error}")
    return _atlas.cut("\n\n".join(texts)) or "(nothing was found)"
