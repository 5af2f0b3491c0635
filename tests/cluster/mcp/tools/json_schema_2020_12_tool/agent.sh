#!/bin/sh
cat > /dev/null
echo '{"result": "This is a simple text response for testing."}'
