"""The names that Atlas agents import. A client of the worker, not a copy of the platform; pure Python, no dependencies."""

__version__ = "0.1.0"


def __getattr__(name):
    # Loaded on demand: a host that starts an agent should not pay for what the agent does not use.
    if name == "AgentBase":
        from atlas.runtime.base import AgentBase

        return AgentBase
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
