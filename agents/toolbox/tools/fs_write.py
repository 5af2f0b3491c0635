"""Writes a file."""

# @guard

import difflib

import _atlas

DIFF_MAX = 8000


def run(path: str, contents: str) -> str:
    """Writes a whole file of the workspace; what it had before is replaced. Shows what has changed.

    Args:
        path: The path of the file
        contents: The whole new content of the file
    """
    old = _atlas.write(path, contents)
    name = _atlas.relative(_atlas.inside(path))
    if old is None:
        return f"wrote {name}: a new file with {len(contents.splitlines())} lines"
    if old == contents:
        return f"wrote {name}: nothing has changed"
    before, after = old.splitlines(), contents.splitlines()
    if len(before) + len(after) > 20_000:
        return f"wrote {name}: {len(after)} lines instead of {len(before)}"
    diff = "\n".join(difflib.unified_diff(before, after, lineterm="", n=2))
    return f"wrote {name}:\n{_atlas.cut(diff, DIFF_MAX)}"
