"""Finds the class in an agent's directory."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from atlas.runtime.base import AgentBase


class NoImplementation(Exception):
    """The directory holds no agent class; the text says why, or is empty if nothing is there."""


def load_agent_class(directory: Path) -> type[AgentBase]:
    """The agent class of `agent.py`."""
    module = _load(directory, "agent.py", f"atlas.agents.{directory.name}")
    found = [value for name in sorted(dir(module)) if _is_agent(value := getattr(module, name))]
    own = [cls for cls in found if cls.__module__ == module.__name__]
    for cls in own or found:
        return cls
    raise NoImplementation("")


def load_orchestrator_class(directory: Path) -> type:
    """The first class of `agent.py` with a `route` method."""
    module = _load(directory, "agent.py", f"atlas.agents.{directory.name}")
    for name in sorted(dir(module)):
        value = getattr(module, name)
        if isinstance(value, type) and value.__module__ == module.__name__ and callable(getattr(value, "route", None)):
            return value
    raise NoImplementation("")


def load_skill(directory: Path):
    """The `execute` function of `skill.py`."""
    module = _load(directory, "skill.py", f"atlas.skills.{directory.name}")
    execute = getattr(module, "execute", None)
    if not callable(execute):
        raise NoImplementation("")
    return execute


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:
        return "(it cannot say of what)"


def _is_agent(value) -> bool:
    return isinstance(value, type) and issubclass(value, AgentBase) and value is not AgentBase


def _load(directory: Path, file: str, name: str) -> ModuleType:
    path = directory / file
    if not path.is_file():
        raise NoImplementation("")
    # Files beside it can be imported by their plain names.
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
    parent = name.rsplit(".", 1)[0]
    if parent not in sys.modules:
        package = ModuleType(parent)
        package.__path__ = []
        sys.modules[parent] = package
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    # Before it runs: dataclasses and pickles look their module up.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        sys.modules.pop(name, None)
        if isinstance(error, KeyboardInterrupt):
            raise
        raise NoImplementation(f"{file}: {type(error).__name__}: {_text(error)}") from error
    return module
