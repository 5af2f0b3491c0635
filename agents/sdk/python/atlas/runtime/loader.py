"""Finds the class in an agent's directory."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from atlas._folders import module_name
from atlas.runtime.base import AgentBase


ORCHESTRATOR_METHODS = ("route", "on_job_complete", "on_job_failed")


class NoImplementation(Exception):
    """The directory holds nothing that can be run; the text says why. Its cause is what the import raised, if that is the reason."""


def load_agent_class(directory: Path) -> type[AgentBase]:
    """The agent class of `agent.py`."""
    module = _load(directory, "agent.py", module_name("atlas.agents", directory))
    found = [value for name in sorted(dir(module)) if _is_agent(value := getattr(module, name))]
    own = [cls for cls in found if cls.__module__ == module.__name__]
    for cls in own or found:
        return cls
    raise NoImplementation("agent.py defines no agent class: a subclass of AgentBase")


def load_orchestrator_class(directory: Path) -> type:
    """The first class that `agent.py` defines with the three methods of an orchestrator."""
    module = _load(directory, "agent.py", module_name("atlas.agents", directory))
    for value in list(vars(module).values()):
        if isinstance(value, type) and value.__module__ == module.__name__ and _routes(value):
            return value
    raise NoImplementation(f"agent.py defines no class with the methods {', '.join(ORCHESTRATOR_METHODS)}")


def load_skill(directory: Path):
    """The function of `skill.py`: the first callable, by name, with a true attribute `__skill__`, or else `execute`."""
    module = _load(directory, "skill.py", module_name("atlas.skills", directory))
    values = [getattr(module, name) for name in sorted(dir(module))]
    marked = [value for value in values if callable(value) and getattr(value, "__skill__", False)]
    execute = marked[0] if marked else getattr(module, "execute", None)
    if not callable(execute):
        raise NoImplementation("skill.py defines no execute function")
    return execute


def is_bare(text: str, error: BaseException) -> bool:
    """True of a text that means nothing without the exception's type: none, a key, a number."""
    if text in ("None", "True", "False") or not any(a.isalpha() and b.isalpha() for a, b in zip(text, text[1:])):
        return True
    return isinstance(error, KeyError) and len(error.args) == 1 and text == repr(error.args[0])


def described(error: BaseException) -> str:
    """What an exception says of itself, after its type where the text is bare."""
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException:
        return name
    if not text.strip():
        return name
    return f"{name}: {text}" if is_bare(text, error) else text


def _import_error(directory: Path, file: str, error: BaseException) -> str:
    """File, line and Python's error, of the innermost place in the package."""
    name = type(error).__name__
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{_place(directory, error.filename, error.lineno) or file}: {name}: {error.msg}"
    place, trace = None, error.__traceback__
    while trace is not None:
        place = _place(directory, trace.tb_frame.f_code.co_filename, trace.tb_lineno) or place
        trace = trace.tb_next
    text = described(error)
    text = text if text.startswith(name) else f"{name}: {text}"
    return f"{place or file}: {text}"


def _place(directory: Path, file: str, line: int) -> str | None:
    """`agent.py, line 3`; none for a file outside the package."""
    try:
        return f"{Path(file).relative_to(directory)}, line {line}"
    except ValueError:
        return None


def _is_agent(value) -> bool:
    return isinstance(value, type) and issubclass(value, AgentBase) and value is not AgentBase


def _routes(cls: type) -> bool:
    return all(callable(getattr(cls, name, None)) for name in ORCHESTRATOR_METHODS)


def _load(directory: Path, file: str, name: str) -> ModuleType:
    path = directory / file
    if not path.is_file():
        raise NoImplementation(f"there is no {file} in the package")
    # Files beside it can be imported by their plain names.
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
    importlib.import_module(name.rpartition(".")[0])
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
        raise NoImplementation(_import_error(directory, file, error)) from error
    return module
