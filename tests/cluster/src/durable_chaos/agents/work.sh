#!/bin/sh
# The command of a step.
set -eu
. ./lines.sh
mark enter "$1"
gate "$1" enter
mark effect "$1" "$ATLAS_STEP_KEY"
gate "$1" leave
echo $(($1 * 7))
