"""Removes a file or folder."""

import os
import shutil

import _atlas


def run(path: str) -> str:
    """Removes a file of the workspace, or a folder with all that is in it. Of a link, only the link is removed.

    Args:
        path: The path of the file or folder
    """
    real = _atlas.inside(path, follow=False)
    top = _atlas.root()
    if real == top or os.path.basename(real) in ("", ".", "..") or top.startswith(real + "/"):
        _atlas.fail("the workspace itself cannot be removed")
    try:
        if os.path.isdir(real) and not os.path.islink(real):
            shutil.rmtree(real)
        else:
            os.unlink(real)
    except OSError as error:
        _atlas.fail(f"could not remove {path!r}: {error.strerror}")
    return f"removed {_atlas.relative(real)}"
