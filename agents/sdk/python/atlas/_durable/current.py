"""The calls of the agent of this process; none outside of a worker."""

import sys

_calls = None


def calls():
    """What the decorator of steps goes through; none in tests and in processes that the agent spawns."""
    if _calls is None and _is_host():
        from atlas._durable.words import NotDurable

        raise NotDurable("a function with @step")
    return _calls


def install(value):
    """Called once, before the agent is loaded."""
    global _calls
    _calls = value


def _is_host():
    return getattr(getattr(sys.modules.get("__main__"), "__spec__", None), "name", "") == "atlas._host"
