"""The parts of an agent: its base class, its context, and a way to run it without a cluster."""

from atlas.runtime.base import AgentBase
from atlas.runtime.context import AgentContext
from atlas.runtime.runner import AgentResult, run_agent

__all__ = ["AgentBase", "AgentContext", "AgentResult", "run_agent"]
