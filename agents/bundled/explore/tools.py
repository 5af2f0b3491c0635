"""The tools of the agent."""

import os
import sys

# Packing adds this part of the tools for files.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "functions", "tools"))

import _atlas

LINES_MAX = 300


def get_structure(depth: int = 3) -> str:
    """Shows the folders of the project with the number of their files.

    Args:
        depth: How many folders deep
    """
    root, counts = _atlas.root(), {}
    depth = _atlas.whole(depth, 3, 1, 10)
    notes = []
    for entry in _atlas.files(root, notes):
        folder = os.path.relpath(os.path.dirname(entry.path), root)
        parts = [] if folder == "." else folder.split(os.sep)
        for length in range(min(len(parts), depth) + 1):
            name = "/".join(parts[:length]) or "."
            counts[name] = counts.get(name, 0) + 1
    lines = [f"{_atlas.shown(name)}/ {count}" for name, count in sorted(counts.items())]
    more = [f"({len(lines) - LINES_MAX} more folders)"] if len(lines) > LINES_MAX else []
    return "\n".join(lines[:LINES_MAX] + more + notes) or "(empty)"
