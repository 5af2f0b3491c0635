"""What an agent says of itself, as its code sees it."""

from atlas.contract.types import AgentContract

__all__ = ["AgentContract"]
