"""Deciding on jobs before they are placed."""

from atlas.orchestrator.protocol import Orchestrator, RoutingDecision

__all__ = ["Orchestrator", "RoutingDecision"]
