# What the script and the commands of its steps have in common.

mark() {
    echo "$RUN $ATLAS_JOB_ID $1 $2 ${3:--}" >> "$PLACE.trace"
}

# Meets the fault that is planned for this boundary.
gate() {
    path="$PLACE.$1.$2"
    [ -e "$path" ] || return 0
    how=$(cat "$path")
    mv "$path" "$path.met"
    if [ "$how" = agent ]; then
        kill -9 "$MAIN"
        sleep 60
    fi
    while [ "$how" = wait ] && [ -e "$path.met" ]; do sleep 0.02; done
}
