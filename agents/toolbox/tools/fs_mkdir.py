"""Makes a folder."""

import os

import _atlas


def run(path: str) -> str:
    """Makes a folder in the workspace, with the folders above it.

    Args:
        path: The path of the new folder
    """
    real = _atlas.inside(path)
    try:
        os.makedirs(real, exist_ok=True)
    except OSError as error:
        _atlas.fail(f"could not make {path!r}: {error.strerror}")
    return f"made {_atlas.relative(real)}/"
