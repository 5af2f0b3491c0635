"""Searches arXiv."""

import urllib.parse
import xml.etree.ElementTree as tree

import _atlas
import _web

ATOM = "{http://www.w3.org/2005/Atom}"


def run(query: str) -> str:
    """Searches arXiv for papers. Returns the title, the authors, the date, the address and the summary of each.

    Args:
        query: What to search for
    """
    count = _atlas.whole(_atlas.setting("ARXIV_MAX_RESULTS"), 3, 1, 20)
    base = _atlas.setting("ARXIV_URL", "https://export.arxiv.org/api/query")
    words = urllib.parse.urlencode({"search_query": f"all:{query[:500]}", "max_results": count})
    _, body, _ = _web.fetch(f"{base}?{words}", configured=True)
    if b"<!DOCTYPE" in body or b"<!ENTITY" in body:
        _atlas.fail("arXiv answered with a document type, which is not read")
    try:
        entries = tree.fromstring(body).findall(f"{ATOM}entry")
    except tree.ParseError as error:
        _atlas.fail(f"arXiv answered with something that is not XML: {error}")
    papers = []
    for entry in entries[:count]:
        text = lambda name, entry=entry: " ".join((entry.findtext(f"{ATOM}{name}") or "").split())
        authors = [" ".join((author.findtext(f"{ATOM}name") or "").split()) for author in entry.findall(f"{ATOM}author")]
        papers.append(f"# {text('title')}\n{', '.join(authors[:10])}; {text('published')[:10]}\n{text('id')}\n{text('summary')[:3000]}")
    return _atlas.cut("\n\n".join(papers)) or "(nothing was found)"
