"""What durable agents import besides `self.context`: the decorator of steps, their retries and their errors.

    from atlas.durable import Retry, StepFailed, step

    @step(effects="once", retry=Retry(3, delay=2.0))
    def charge(order): ...

In `execute` of an agent with `durable: true`, `await charge(order)` (or `charge(order)` in code without `await`) is a step: it runs
once, and later attempts of the job get what it returned. Outside of a job it is the plain function, so that tests can call it.
"""

from __future__ import annotations

import functools
import inspect

from atlas._durable import current
from atlas._durable.retry import Retry
from atlas._durable.words import DID_NOT_HAPPEN, Message, NestedStep, NotDurable, Parked, StepFailed

__all__ = ["DID_NOT_HAPPEN", "Message", "NestedStep", "NotDurable", "Parked", "Retry", "StepFailed", "step"]


def step(function=None, *, name=None, effects=None, retry=None, reconcile=None):
    """Makes a function or method a step of the job that calls it. The options are those of `self.context.step`."""
    if function is None:
        return functools.partial(step, name=name, effects=effects, retry=retry, reconcile=reconcile)
    if isinstance(function, (staticmethod, classmethod)):
        raise TypeError(f"@step goes below @{type(function).__name__}")
    named = name or function.__name__
    options = {"effects": effects, "retry": retry, "reconcile": reconcile}
    bound = _is_method(function)

    def began(args, kwargs):
        # The object that a method belongs to is no argument: it is another one in each attempt.
        given = (args[1:] if bound else args, kwargs)
        return current.calls().step(named, function, args, kwargs, options, given)

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wrapper(*args, **kwargs):
            if current.calls() is None:
                return await function(*args, **kwargs)
            return await began(args, kwargs)

    else:

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs) if current.calls() is None else began(args, kwargs)

    wrapper.__atlas_step__ = function
    return wrapper


def _is_method(function):
    """True of a function that a class body defines, by its name and that of its first parameter."""
    in_class = "." in function.__qualname__.rpartition("<locals>.")[2]
    return in_class and next(iter(inspect.signature(function).parameters), "") in ("self", "cls")
