#!/bin/sh
name=$(sed -n 's/.*"name": *"\([^"]*\)".*/\1/p')
printf '{"greeting": "Hello, %s"}' "$name"
