"""Lists a folder."""

import _atlas


def run(path: str) -> str:
    """Lists the files and folders in a folder of the workspace.

    Args:
        path: The path of the folder
    """
    return _atlas.listed(path)
