#!/usr/bin/env bash

# @describe Shows all kinds of parameters of a tool in Bash.
# @option --string! Define a required string property
# @option --string-enum![foo|bar] Define a required string property with enum
# @option --string-optional Define an optional string property
# @flag --boolean Define a boolean property
# @option --integer! <INT> Define a required integer property
# @option --number! <NUM> Define a required number property
# @option --array+ <VALUE> Define a required string array property
# @option --array-optional* Define an optional string array property

# @env LLM_OUTPUT=/dev/stdout The output path

main() {
    {
        printf 'boolean: %s\n' "${argc_boolean:-0}"
        printf 'string: %s\n' "$argc_string"
        printf 'string_enum: %s\n' "$argc_string_enum"
        printf 'integer: %s\n' "$argc_integer"
        printf 'number: %s\n' "$argc_number"
        printf 'array: %s\n' "${argc_array[*]}"
        printf 'string_optional: %s\n' "${argc_string_optional:-}"
        printf 'array_optional: %s\n' "${argc_array_optional[*]:-}"
    } >> "$LLM_OUTPUT"
}

eval "$(argc --argc-eval "$0" "$@")"
