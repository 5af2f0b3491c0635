"""The tool of the agent that weighs sources."""

import re
import urllib.parse

PREPRINTS = ("arxiv.org", "biorxiv.org", "medrxiv.org", "ssrn.com")


def classify_source(url: str) -> str:
    """Says how reliable the source at an address is, by its host.

    Args:
        url: The address of the source
    """
    try:
        host = (urllib.parse.urlsplit(url if "//" in url else f"//{url}").hostname or "").lower()
    except ValueError:
        host = ""
    if not re.fullmatch(r"[a-z0-9.-]+\.[a-z0-9-]+", host):
        return "UNKNOWN - the address cannot be read"
    tier, reason = _classified(host)
    return f"{host}: {tier} - {reason}"


def _classified(host):
    last = host.rsplit(".", 1)[1]
    if last in ("gov", "mil") or re.search(r"\.(gov|mil|gob|gouv)\.[a-z]{2}$", host):
        return "HIGH", "a government"
    if last == "edu" or re.search(r"\.(ac|edu)\.[a-z]{2}$", host):
        return "HIGH", "a university"
    if any(host == name or host.endswith(f".{name}") for name in PREPRINTS):
        return "PREPRINT", "not reviewed"
    if host == "wikipedia.org" or host.endswith(".wikipedia.org"):
        return "TERTIARY", "an encyclopedia; use its sources"
    if last == "org":
        return "MEDIUM", "an organization"
    return "UNVERIFIED", "nothing is known about the host"
