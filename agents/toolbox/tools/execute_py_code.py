"""Runs Python."""

# @guard

import sys

import _atlas


def run(code: str) -> str:
    """Runs a program in Python in the workspace, for at most 100 s. Returns what it prints.

    Args:
        code: The program; print what you want to know
    """
    return _atlas.said(*_atlas.run([sys.executable, "-"], code))
