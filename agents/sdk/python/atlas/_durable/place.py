"""Which line of the agent makes a call."""

import os
import sys

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_FRAMES_MAX = 40
_directory = ""


def belongs_to(directory):
    """The folder of the agent; its lines are preferred."""
    global _directory
    _directory = os.path.join(os.path.abspath(directory), "")


def is_own(file):
    """True of a file in the agent's folder."""
    return bool(_directory) and file.startswith(_directory)


def shown(file, line):
    """`agent.py:31`."""
    return f"{file[len(_directory):] if is_own(file) else os.path.basename(file)}:{line}"


def caller(function=None):
    """The innermost line of the agent on the stack, or else where `function` is defined."""
    frame = sys._getframe(1)
    for _ in range(_FRAMES_MAX):
        if frame is None:
            break
        file = frame.f_code.co_filename
        if is_own(file) and not file.startswith(_OURS):
            return shown(file, frame.f_lineno)
        frame = frame.f_back
    code = getattr(function, "__code__", None)
    return shown(code.co_filename, code.co_firstlineno) if code is not None else ""
