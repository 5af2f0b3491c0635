"""Lists a folder."""

import os

import _atlas

ENTRIES_MAX = 2000


def run(path: str) -> str:
    """Lists the files and folders in a folder of the workspace.

    Args:
        path: The path of the folder
    """
    try:
        entries = sorted(os.scandir(_atlas.inside(path)), key=lambda entry: entry.name)
    except OSError as error:
        _atlas.fail(f"could not list {path!r}: {error.strerror}")

    def line(entry):
        kind = "@" if entry.is_symlink() else "/" if entry.is_dir() else ""
        return _atlas.shown(entry.name.encode("utf-8", "backslashreplace").decode()) + kind

    lines = [line(entry) for entry in entries[:ENTRIES_MAX]]
    if len(entries) > ENTRIES_MAX:
        lines.append(f"({len(entries) - ENTRIES_MAX} more)")
    return "\n".join(lines) or "(empty)"
