"""The registry as an orchestrator sees it: the agents that were registered when it was called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable

from atlas.contract.types import AgentContract


@dataclass
class RegistryEntry:
    """One registered agent version."""

    contract: AgentContract


def _order(contract: AgentContract) -> tuple[int, ...]:
    return tuple(int(part) for part in contract.version.split("."))


class AgentRegistry:
    """Looks agents up by name, version and capability."""

    def __init__(self, contracts: Iterable[AgentContract] = ()):
        self._entries: dict[str, list[RegistryEntry]] = {}
        for contract in contracts:
            self._entries.setdefault(contract.name, []).append(RegistryEntry(contract))
        for entries in self._entries.values():
            entries.sort(key=lambda entry: _order(entry.contract))

    def get(self, name: str, version: str | None = None) -> RegistryEntry | None:
        """That version, or the highest."""
        entries = self._entries.get(name, [])
        if version is None:
            return entries[-1] if entries else None
        return next((entry for entry in entries if entry.contract.version == version), None)

    def search(self, capability: str) -> list[RegistryEntry]:
        """Every version that has exactly this capability."""
        every = (entry for entries in self._entries.values() for entry in entries)
        return [entry for entry in every if capability in entry.contract.capabilities]

    def list_all(self) -> list[RegistryEntry]:
        """The highest version of every agent."""
        return [entries[-1] for entries in self._entries.values()]

    def list_orchestrators(self) -> list[RegistryEntry]:
        """The orchestrators."""
        return [entry for entry in self.list_all() if entry.contract.type == "orchestrator"]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __len__(self) -> int:
        return len(self._entries)
