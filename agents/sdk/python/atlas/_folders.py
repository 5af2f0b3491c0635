"""Imports agents and skills of folders by the names that the loader gives them.

The loader itself needs none of this. Processes that `multiprocessing` spawns do: they get the functions and objects to work on as
names such as `atlas.agents.FOLDER.work`, and the module search path of the agent, on which its folder is.
"""

import importlib.util
import sys
from pathlib import Path


def module_name(package, directory):
    """The name of the module of a folder."""
    return f"{package}.{directory.name.replace('.', '_')}"


class _Finder:
    def __init__(self, package, file):
        self._package, self._file = package, file

    def find_spec(self, name, _path=None, _target=None):
        if name.rpartition(".")[0] != self._package:
            return None
        for folder in map(Path, sys.path):
            if folder.name and module_name(self._package, folder) == name and (folder / self._file).is_file():
                return importlib.util.spec_from_file_location(name, folder / self._file)
        return None


def install(package, file):
    """Finds the modules of `package` as `file` of folders on the search path; called once, by the package."""
    sys.meta_path.append(_Finder(package, file))
