#!/bin/sh
# Twenty steps in a shell, the first ten by `atlasctl step`, the others by the protocol of lines. Each leaves lines in a file outside of
# Atlas, and lets itself be killed at its boundaries.
set -eu
input=$(cat)
field() {
    printf '%s' "$input" | sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p"
}
FAMILY=$(field family)
FOLDER=$(field dir)
PLACE="$FOLDER/$FAMILY"
RUN=$(cat /proc/sys/kernel/random/uuid)
MAIN=$$
export PLACE RUN MAIN
. ./lines.sh

say() {
    printf '%s\n' "$1" > "/dev/fd/$ATLAS_STEP_OUT"
}

hear() {
    read -r answer < "/dev/fd/$ATLAS_STEP_IN"
}

by_lines() {
    say "{\"call\":$1,\"kind\":\"step\",\"name\":\"s$1\",\"args\":[$1,$2],\"effects\":\"$3\"}"
    hear
    case "$answer" in
    *'"make":true'*)
        key=$(printf '%s' "$answer" | sed 's/.*"key":"\([^"]*\)".*/\1/')
        made=$(ATLAS_STEP_KEY=$key ./work.sh "$1" "$2")
        say "{\"made\":$1,\"value\":$made}"
        hear
        ;;
    esac
    got=$(printf '%s' "$answer" | sed -n 's/.*"value":\([0-9]*\).*/\1/p')
}

steps() {
    n=$1
    while [ "$n" -le "$2" ]; do
        mark before "$n"
        gate "$n" before
        case $((n % 3)) in
        0) effects=pure ;;
        1) effects=once ;;
        *) effects=idempotent ;;
        esac
        if [ "$n" -le 10 ]; then
            got=$("$ATLASCTL" step "s$n" --effects "$effects" -- ./work.sh "$n" "$total")
        else
            by_lines "$n" "$total" "$effects"
        fi
        mark after "$n"
        gate "$n" after
        total=$((total + ${got:-$((n * 7))}))
        n=$((n + 1))
    done
}

waits() {
    mark waits "$1"
    name=$1
    shift
    got=$("$ATLASCTL" step "$@")
    mark went "$name"
}

total=0
mark starts 0
steps 1 3
waits sleep --sleep 100ms
steps 4 6
waits receive --receive go
message=$got
steps 7 9
waits spawn --spawn durable-child --input "{\"dir\":\"$FOLDER\",\"family\":\"$FAMILY\"}"
child=$got
steps 10 12
waits ask --ask "Go on?" --options yes,no
said=$got
steps 13 15
waits pause --sleep "$(field pause)s"
steps 16 20
mark ends 0
printf '{"total":%s,"message":"%s","child":%s,"said":"%s"}\n' "$total" "$message" "$child" "$said"
