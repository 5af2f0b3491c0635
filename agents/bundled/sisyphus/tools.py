"""The tools of the agent: what the project is, and whether it is in order."""

# @guard run_build run_tests

import json
import os
import sys

# Packing adds this part of the tools for files.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "functions", "tools"))

import _atlas
import _project


def get_project_info() -> dict:
    """Shows the kind of the project, its commands to build, test and check it, and what is in its folder."""
    return {**_project.project(), "files": sorted(map(_atlas.shown, os.listdir(_atlas.root())))[:200]}


def run_build() -> str:
    """Builds or checks the project."""
    commands = _project.project()
    return _ran(commands["check"] or commands["build"], "build or check")


def run_tests() -> str:
    """Runs the tests of the project."""
    return _ran(_project.project()["test"], "test")


def _ran(command, what):
    if not command:
        return f"There is no command to {what} the project. Name it in .loki-project.json: {json.dumps({'build': '', 'test': '', 'check': ''})}"
    return _project.run(command, _atlas.SECONDS_MAX)[1]
