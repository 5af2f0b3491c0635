"""What the scripts share: the state, and the folder of the project."""

import json
import os
import sys

# Packing adds these parts of the packaged tools.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "functions", "tools"))
sys.dont_write_bytecode = True

import _atlas
import _project

# Shows that a folder of the attempt still has the changes: a later attempt begins with an empty one.
MARK = ".atlas-coder"


def state():
    if "GRAPH_STATE_FILE" in os.environ:
        with open(os.environ["GRAPH_STATE_FILE"], encoding="utf-8") as file:
            return json.load(file)
    return json.loads(os.environ["GRAPH_STATE"])


def give(**changes):
    print(json.dumps(changes))


def is_own():
    """Whether the project is in the folder of the attempt, which ends with it."""
    return _atlas.is_below(_atlas.root(), os.path.realpath(os.getcwd()))


def setting(name):
    return _atlas.setting(name)


def project():
    return _project.project()


def run(command, seconds):
    return _project.run(command, seconds)
