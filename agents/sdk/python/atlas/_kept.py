"""The processes that an agent keeps for its next job."""

import sys


def kept(agent):
    """The ids of the processes behind attributes of the agent and globals of its module: pools, managers, single processes."""
    if "multiprocessing.process" not in sys.modules:
        return []
    module = sys.modules.get(type(agent).__module__)
    values = [*getattr(agent, "__dict__", {}).values(), *(vars(module).values() if module else ())]
    found = {getattr(process, "pid", None) for value in values for process in _processes(value)}
    return sorted(pid for pid in found if isinstance(pid, int))


def _processes(value):
    """The processes that Python's own classes hold, which have no public name for them."""
    kinds = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(value).__mro__}
    if "multiprocessing.process.BaseProcess" in kinds:
        return [value]
    if "concurrent.futures.process.ProcessPoolExecutor" in kinds:
        return list((getattr(value, "_processes", None) or {}).values())
    if "multiprocessing.pool.Pool" in kinds:
        return list(getattr(value, "_pool", None) or ())
    if "multiprocessing.managers.BaseManager" in kinds:
        return [process for process in [getattr(value, "_process", None)] if process is not None]
    return []
