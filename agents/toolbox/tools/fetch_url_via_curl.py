"""Reads an address of the web."""

import html.parser
import re

import _atlas
import _web

BLOCKS = {
    "address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figure", "footer", "form", "h1", "h2", "h3", "h4",
    "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table", "tr", "ul",
}
HIDDEN = {"script", "style", "noscript", "template", "svg", "iframe"}
TEXT_MAX = 60_000


def run(url: str) -> str:
    """Reads a page of the web, and returns it as text.

    Args:
        url: The address, with http or https
    """
    kind, body, charset = _web.fetch(url)
    if kind in ("text/html", "application/xhtml+xml"):
        return _atlas.cut(text_of(_web.decoded(body, charset)), TEXT_MAX) or "(the page has no text)"
    is_text = kind.startswith("text/") or kind.endswith(("json", "xml", "yaml", "javascript"))
    if not is_text and _atlas.is_binary(body[:8192]):
        _atlas.fail(f"the address is no text: {kind}, {len(body)} bytes")
    return _atlas.cut(_web.decoded(body, charset), TEXT_MAX) or "(empty)"


class Reader(html.parser.HTMLParser):
    """Collects the text of a page, with headings, items of lists and links."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.pieces, self.links = [], []
        # How many open elements are hidden, and which place among them the first of each kind has.
        self.hidden, self.first = 0, {}

    def handle_starttag(self, tag, attributes):
        if tag in HIDDEN:
            self.first.setdefault(tag, self.hidden)
            self.hidden += 1
        if tag in BLOCKS:
            self.pieces.append("\n")
        if tag == "li":
            self.pieces.append("- ")
        elif re.fullmatch("h[1-6]", tag):
            self.pieces.append("#" * int(tag[1]) + " ")
        elif tag in ("td", "th"):
            self.pieces.append(" | ")
        elif tag == "a":
            self.links.append(dict(attributes).get("href") or "")

    def handle_endtag(self, tag):
        if tag in self.first:
            # Also ends those inside it that were never closed.
            self.hidden = self.first[tag]
            self.first = {other: place for other, place in self.first.items() if place < self.hidden}
        if tag == "a" and self.links:
            address = self.links.pop()
            if address.startswith(("http://", "https://")):
                self.pieces.append(f" ({address})")
        if tag in BLOCKS:
            self.pieces.append("\n")

    def handle_data(self, text):
        if not self.hidden:
            self.pieces.append(re.sub(r"\s+", " ", text))


def text_of(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    lines = [line.strip() for line in "".join(reader.pieces).split("\n")]
    return re.sub("\n{3,}", "\n\n", "\n".join(lines)).strip()
