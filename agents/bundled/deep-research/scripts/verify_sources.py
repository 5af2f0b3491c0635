"""Asks each address of the report whether it exists."""

import concurrent.futures
import re

# Packing adds what is imported here; the first one says where it is.
import _state
import _atlas
import _web

ADDRESSES_MAX = 60
SECONDS = 5


def trimmed(address):
    """An address without the signs of the sentence around it. Parentheses of its own belong to it."""
    depth = 0
    for place, sign in enumerate(address):
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return trimmed(address[:place])
    return address.rstrip(".,;:!?")


report = _state.state().get("report", "")
found = re.findall(r"https?://[^\s<>\"'`\]}]+", report)
found += [f"https://doi.org/{doi}" for doi in re.findall(r"(?<!doi\.org/)\b10\.\d{4,9}/[^\s<>\"'`\]}]+", report)]
addresses = list(dict.fromkeys(trimmed(address) for address in found))[:ADDRESSES_MAX]


def check(address):
    good, why = _web.exists(address, SECONDS)
    return f"{'OK' if good else 'NOT FOUND'} {_atlas.shown(address)}{'' if good else f' ({why})'}"


with concurrent.futures.ThreadPoolExecutor(8) as pool:
    lines = list(pool.map(check, addresses))
missing = sum(not line.startswith("OK") for line in lines)
summary = f"{len(lines)} addresses checked, {missing} not found." if lines else "The report has no addresses."
_state.give(source_check="\n".join([summary, *lines]))
