"""`replay: strict`: a warning, once a line, where the agent's own code takes what is different in each attempt: the clock, random numbers, ids
of chance, and the network, outside of steps.

It looks at the calls that the agent's files make (`sys.setprofile`), so it also sees functions that were imported by name. Files of
packages and of the standard library are not looked at.
"""

from __future__ import annotations

import datetime
import logging
import random
import sys
import threading
import time
import uuid

from atlas._durable import place

_CLOCK = "use self.context.now()"
_CHANCE = "use self.context.random()"
_ID = "use self.context.uuid()"
_STEP = "do it in a step"

_BUILTIN = {
    (None, "time", "time"): _CLOCK,
    (None, "time", "time_ns"): _CLOCK,
    (None, "time", "monotonic"): _CLOCK,
    (None, "posix", "urandom"): _CHANCE,
}
_METHODS = {"now": _CLOCK, "utcnow": _CLOCK, "today": _CLOCK}
_RANDOM_FILE, _UUID_FILE = random.__file__, uuid.__file__
_UUIDS = ("uuid1", "uuid4", "uuid6", "uuid7", "uuid8")

_watch = None  # that of the current run
_hooked = False


class Watch:
    """The warnings of one run."""

    def __init__(self, run):
        self._run = run
        self._lines = set()

    def begin(self):
        """Watches the thread that calls this, and those that it starts."""
        global _watch, _hooked
        _watch = self
        sys.setprofile(_profile)
        threading.setprofile(_profile)
        if not _hooked:
            _hooked = True  # hooks of this kind stay; it does nothing between runs
            sys.addaudithook(_audit)

    def end(self):
        """Stops watching."""
        global _watch
        _watch = None
        sys.setprofile(None)
        threading.setprofile(None)

    def note(self, frame, what, instead):
        """Says it once for each line."""
        from atlas._durable.calls import inside

        line = (frame.f_code.co_filename, frame.f_lineno)
        if inside() is not None or line in self._lines:
            return
        self._lines.add(line)
        logging.getLogger("atlas.durable").warning("%s: %s outside of a step is different in each attempt; %s", place.shown(*line), what, instead)


def _profile(frame, event, argument):
    watch = _watch
    if watch is None:
        return
    if event == "c_call":
        if not place.is_own(frame.f_code.co_filename):
            return
        found = _of_builtin(argument)
        if found is not None:
            watch.note(frame, *found)
    elif event == "call":
        file = frame.f_code.co_filename
        if file != _RANDOM_FILE and file != _UUID_FILE:
            return
        caller, name = frame.f_back, frame.f_code.co_name
        if caller is None or not place.is_own(caller.f_code.co_filename):
            return
        if file == _UUID_FILE and name in _UUIDS:
            watch.note(caller, f"uuid.{name}()", _ID)
        elif file == _RANDOM_FILE and frame.f_locals.get("self") is random._inst:
            watch.note(caller, f"random.{name}()", _CHANCE)


def _of_builtin(function):
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if isinstance(owner, type) and issubclass(owner, datetime.date):
        return (f"{owner.__name__}.{name}()", _METHODS[name]) if name in _METHODS else None
    if owner is random._inst:
        return f"random.{name}()", _CHANCE
    module = getattr(owner, "__name__", None) if type(owner) is type(sys) else getattr(function, "__module__", None)
    instead = _BUILTIN.get((None, module, name))
    return (f"{'os' if module == 'posix' else module}.{name}()", instead) if instead else None


def _audit(event, _arguments):
    watch = _watch
    if watch is None or event not in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        return
    frame = sys._getframe(1)
    while frame is not None and not place.is_own(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is not None:
        watch.note(frame, "the network", _STEP)
