"""The contract of an agent, as its code sees it."""

from atlas.contract.types import AgentContract

__all__ = ["AgentContract"]
