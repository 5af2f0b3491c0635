"""Runs Python."""

# @guard

import sys

import _atlas


def run(code: str) -> str:
    """Runs a program in Python in the workspace, for at most 100 s. Returns what it prints.

    Args:
        code: The program; print what you want to know
    """
    status, text = _atlas.run([sys.executable, "-"], code)
    if status is None:
        return f"{text}\n[ended after {_atlas.SECONDS_MAX} s]"
    return text if status == 0 and text else f"{text}\n[exit status {status}]".lstrip("\n")
