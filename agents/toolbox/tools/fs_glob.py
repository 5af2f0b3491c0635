"""Finds files by their names."""

import os

import _atlas

FOUND_MAX = 100


def run(pattern: str, path: str = ".") -> str:
    """Finds files in the workspace by a pattern such as src/**/*.py, the newest first. Hidden folders and those of
    dependencies and builds are left out.

    Args:
        pattern: The pattern; one without a slash matches names in all folders
        path: The folder to search, by default the workspace
    """
    start = _atlas.inside(path)
    wanted = _atlas.pattern(pattern)
    found, notes = [], []
    with _atlas.limited(notes):
        for entry in _atlas.files(start, notes, hidden=pattern.startswith(".")):
            name = os.path.relpath(entry.path, start) if "/" in pattern else entry.name
            if wanted.fullmatch(name):
                found.append((-entry.stat(follow_symlinks=False).st_mtime_ns, entry.path))
    found.sort()
    lines = [_atlas.relative(path) for _, path in found[:FOUND_MAX]]
    if len(found) > FOUND_MAX:
        lines.append(f"({len(found) - FOUND_MAX} more; use a narrower pattern)")
    return "\n".join([*(lines or ["(no file matches)"]), *notes])
