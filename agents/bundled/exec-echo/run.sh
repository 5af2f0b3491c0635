#!/bin/sh
# Reads {"input": {"message": …}, "context": {…}} and answers {"message": …}.
#
# An exec agent may be any program; this one needs nothing but sh and awk. The message is copied as the JSON text that it
# is, escapes and all, so nothing has to be decoded.
LC_ALL=C exec awk '
    { text = text $0 "\n" }

    # Takes the next token of the document off `text`.
    function token(   found) {
        sub(/^[ \t\r\n]+/, "", text)
        if (!match(text, /^"([^"\\]|\\.)*"/) && !match(text, /^[][{}:,]/) && !match(text, /^[-+.0-9A-Za-z]+/)) return ""
        found = substr(text, 1, RLENGTH)
        text = substr(text, RLENGTH + 1)
        return found
    }

    END {
        depth = 0
        for (now = token(); now != ""; now = ahead) {
            ahead = token()
            if (now == "{" || now == "[") { kind[++depth] = now; key[depth] = "" }
            else if (now == "}" || now == "]") depth--
            else if (ahead == ":") key[depth] = now
            else if (depth == 2 && kind[1] kind[2] == "{{" && key[1] == "\"input\"" && key[2] == "\"message\"" && now ~ /^"/) {
                print "{\"message\": " now "}"
                exit
            }
        }
        print "the input holds no message" > "/dev/stderr"
        exit 1
    }
'
