"""What the scripts share: the state, and the folder of the project."""

import os
import sys

# Packing adds these parts of the packaged tools.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "functions", "tools"))
sys.dont_write_bytecode = True

import _atlas
import _graph
import _project

state, give = _graph.state, _graph.give

# Shows that a folder of the attempt still has the changes: a later attempt begins with an empty one.
MARK = ".atlas-coder"


def is_own():
    """Whether the project is in the folder of the attempt, which ends with it."""
    return _atlas.is_below(_atlas.root(), os.path.realpath(os.getcwd()))


def setting(name):
    return _atlas.setting(name)


def project():
    return _project.project()


def run(command, seconds):
    return _project.run(command, seconds)
