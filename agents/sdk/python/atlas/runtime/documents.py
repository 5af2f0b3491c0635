"""Document bases, as `self.context` gives them to agents: a call is one of a tool of the platform."""

from __future__ import annotations

from typing import Any, Awaitable

from atlas._channel import sound
from atlas.runtime.library import _called, _given


def search(context, base, query, top_k, source, metadata) -> Awaitable[list[dict[str, Any]]]:
    arguments = {"base": sound(str(base)), "query": sound(str(query)), **_given(top_k=top_k, source=source, metadata=metadata)}
    # The controller knows which bases the contract names.
    return _called(context, True, "atlas.documents.search", arguments, lambda data: data.get("hits") or [], [])
