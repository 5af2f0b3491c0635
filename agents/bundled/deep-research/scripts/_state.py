"""The state of the run."""

import os
import sys

# Packing adds this part of the packaged tools.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "functions", "tools"))
sys.dont_write_bytecode = True

import _graph

state, give = _graph.state, _graph.give
