"""Splits the user's text into paragraphs."""

import json
import os

text = json.loads(os.environ["GRAPH_STATE"])["initial_prompt"]
paragraphs = [part.strip() for part in text.split("\n\n") if part.strip()]
print(json.dumps({"paragraphs": paragraphs}))
