"""Changes nothing: from here, two nodes run at the same time."""

print("{}")
