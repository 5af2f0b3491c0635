"""Shared memory and knowledge, as `self.context` gives them to agents. The controller keeps both; a call is one of a tool of the platform."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from typing import Any, Awaitable, Callable

from atlas._channel import sound
from atlas.knowledge.provider import KnowledgeEntry

MEMORY_OFF = "Memory not enabled — set requires.memory: true in contract"
KNOWLEDGE_OFF = "Knowledge not enabled — set requires.knowledge in contract"

_NAMESPACE = "namespace"
_DENIED = "Agent not allowed to "
_MEMBERS = {field.name for field in fields(KnowledgeEntry)}


class SharedMemory:
    """A text that agents share. `scope` says who: `namespace` is all agents of the namespace. Without it, the contract says."""

    def __init__(self, context: Any, scope: str | None = None):
        self._context = context
        self._scope = None if scope is None else str(scope)

    @property
    def scope(self) -> str:
        if self._scope is not None:
            return self._scope
        stated = self._context._memory_on
        return stated if isinstance(stated, str) else _NAMESPACE

    def of(self, scope: str) -> SharedMemory:
        """That of another scope: `agent` is shared by the jobs of this agent, `user` by those of the caller, `conversation` by those of the
        conversation; `agent:NAME` is that of another agent."""
        return SharedMemory(self._context, scope)

    def read(self) -> Awaitable[str]:
        """The text; empty if the contract does not enable memory."""
        return self._ask("read", {}, lambda data: data.get("text") or "", "")

    def append(self, text: str) -> Awaitable[None]:
        """Adds an entry, which others cannot get lost by."""
        return self._ask("append", {"text": sound(str(text))}, _nothing, RuntimeError(MEMORY_OFF))

    def write(self, text: str) -> Awaitable[None]:
        """Replaces the text."""
        return self._ask("write", {"text": sound(str(text))}, _nothing, RuntimeError(MEMORY_OFF))

    def _ask(self, word, arguments, take, off):
        if self._scope is not None:
            arguments["scope"] = sound(self._scope)
        return _called(self._context, self._context._memory_on, f"atlas.memory.{word}", arguments, take, off)

    def __repr__(self):
        return f"SharedMemory({self.scope!r})"


def search(context, query, domain, tags, limit) -> Awaitable[list[KnowledgeEntry]]:
    arguments = {"query": sound(str(query)), "limit": int(limit), **_given(domain=domain, tags=tags)}
    return _knowledge(context, "search", arguments, lambda data: [_entry(entry) for entry in data.get("entries") or []], [])


def get(context, entry_id) -> Awaitable[KnowledgeEntry | None]:
    return _knowledge(context, "get", {"id": sound(str(entry_id))}, _optional, None)


def store(context, content, domain, tags, metadata) -> Awaitable[KnowledgeEntry]:
    arguments = {"content": sound(str(content)), **_given(domain=domain, tags=tags, metadata=metadata)}
    return _knowledge(context, "store", arguments, lambda data: _entry(data["entry"]), RuntimeError(KNOWLEDGE_OFF))


def update(context, entry_id, content, tags, metadata) -> Awaitable[KnowledgeEntry | None]:
    arguments = {"id": sound(str(entry_id)), **_given(content=content, tags=tags, metadata=metadata)}
    return _knowledge(context, "update", arguments, _optional, RuntimeError(KNOWLEDGE_OFF))


def _knowledge(context, word, arguments, take, off):
    return _called(context, context._knowledge_on, f"atlas.knowledge.{word}", arguments, take, off)


def _called(context, is_on: bool, tool: str, arguments: dict, take: Callable[[dict], Any], off: Any) -> Awaitable[Any]:
    """A tool call. `off` is what comes of it if the contract does not enable it: a value, or an error. In a durable agent the call is recorded."""
    if is_on and context._is_durable:
        ask = context._durable.tool(tool, arguments)

        async def recorded(port):
            return take(_data(await ask(port)))

        return context._durable.through(recorded)

    async def call():
        return take(_data(await context._tool_callback(tool, arguments))) if is_on else _off(off)

    # Durable code without `await` gets the value itself.
    return _off(off) if context._is_durable and not _has_loop() else call()


def _has_loop():
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _off(off):
    if isinstance(off, Exception):
        raise off
    return off


def _data(end):
    if "data" in end:
        return end["data"] or {}
    text = end.get("refused") or end.get("error") or ""
    raise (PermissionError if text.startswith(_DENIED) else RuntimeError)(text)


def _given(**arguments):
    return {name: value for name, value in arguments.items() if value is not None}


def _optional(data):
    entry = data.get("entry")
    return None if entry is None else _entry(entry)


def _entry(entry):
    return KnowledgeEntry(**{name: value for name, value in entry.items() if name in _MEMBERS})


def _nothing(_data):
    return None
