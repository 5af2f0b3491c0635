#!/bin/sh
# One JSON document on stdin, {"input": {...}, "context": {...}}; one on stdout.
if command -v jq >/dev/null; then
  exec jq -c '{greeting: ("Hello, " + .input.name)}'
elif command -v python3 >/dev/null; then
  exec python3 -c 'import json, sys
name = json.load(sys.stdin)["input"]["name"]
json.dump({"greeting": "Hello, " + name}, sys.stdout)'
fi
echo "agent.sh needs jq or python3 to read JSON" >&2
exit 1
