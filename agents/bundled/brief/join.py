"""Makes a list of the summaries."""

import json
import os

summaries = json.loads(os.environ["GRAPH_STATE"])["summaries"]
print(json.dumps({"list": "\n".join(f"- {summary}" for summary in summaries)}))
