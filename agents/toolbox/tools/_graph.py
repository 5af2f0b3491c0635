"""What the scripts of graphs share: the state of the run, and changes of it."""

import json
import os


def state():
    if "GRAPH_STATE_FILE" in os.environ:
        with open(os.environ["GRAPH_STATE_FILE"], encoding="utf-8") as file:
            return json.load(file)
    return json.loads(os.environ["GRAPH_STATE"])


def give(**changes):
    print(json.dumps(changes))
