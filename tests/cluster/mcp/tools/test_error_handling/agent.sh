#!/bin/sh
cat > /dev/null
echo "error: This tool intentionally returns an error for testing" >&2
exit 1
