#!/bin/sh
# The job that each program spawns.
set -eu
input=$(cat)
field() {
    printf '%s' "$input" | sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p"
}
echo "$ATLAS_JOB_ID" >> "$(field dir)/$(field family).children"
printf '{"grew":true}\n'
