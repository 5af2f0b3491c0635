"""Reads a file as a whole."""

import os

import _atlas


def run(path: str) -> str:
    """Reads the whole content of a text file in the workspace, without line numbers. Use fs_read for large files.

    Args:
        path: The path of the file
    """
    if os.path.isdir(_atlas.inside(path)):
        _atlas.fail(f"{path!r} is a folder; list it with fs_ls")
    return _atlas.shown_text(_atlas.text_of(path, _atlas.TEXT_MAX)) or "(the file is empty)"
