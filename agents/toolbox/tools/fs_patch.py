"""Changes parts of a file."""

# @guard

import re

import _atlas

HEADER = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@.*")


def run(path: str, contents: str) -> str:
    """Changes a file of the workspace by a unified diff. Each hunk is found by its context, so line numbers need not be right.

    Args:
        path: The path of the file
        contents: The hunks: lines that begin with a space, - or +, after a line @@ -1,3 +1,4 @@ or @@
    """
    text = _atlas.text_of(path, strict=True)
    lines, shift = text.split("\n"), 0
    hunks = read(contents)
    for number, (wanted, changes) in enumerate(hunks, 1):
        old = [text for kind, text in changes if kind != "+"]
        near = None if wanted is None else wanted - 1 + shift
        place = find(lines, old, near)
        if place is None:
            _atlas.fail(f"hunk {number} does not match {path!r}: read the file again; nothing was changed. It begins with: {old[0][:200]!r}")
        if place == -1:
            _atlas.fail(f"hunk {number} matches several places of {path!r}: add lines of context; nothing was changed")
        new = changed(lines, place, changes)
        lines[place : place + len(old)] = new
        shift += len(new) - len(old)
    _atlas.write(path, "\n".join(lines))
    return f"changed {_atlas.relative(_atlas.inside(path))}: {len(hunks)} {'hunk' if len(hunks) == 1 else 'hunks'}"


def read(diff):
    """The hunks: the line that is named, and lines with their kind: a space, - or +."""
    hunks, current = [], None
    lines = diff.split("\n")
    for place, line in enumerate(lines):
        header = HEADER.fullmatch(line)
        if header or line.startswith("@@"):
            current = (int(header.group(1)) if header else None, [])
            hunks.append(current)
            continue
        if line.startswith(("--- ", "+++ ", "diff ", "index ", "\\ No newline")) and (current is None or line[0] == "\\"):
            continue
        if current is None:
            if not line.strip():
                continue
            current = (None, [])
            hunks.append(current)
        if not line and place == len(lines) - 1:
            continue
        kind, text = (line[0], line[1:]) if line else (" ", "")
        if kind not in " +-":
            _atlas.fail(f"line {place + 1} of the diff begins with {kind!r} instead of a space, - or +")
        current[1].append((kind, text))
    hunks = [hunk for hunk in hunks if hunk[1]]
    if not hunks:
        _atlas.fail("the diff has no hunk")
    if len(hunks) > 500:
        _atlas.fail("the diff has more than 500 hunks")
    return hunks


def changed(lines, place, changes):
    """The lines that a hunk leaves. Those that stay are as they were, and new ones end as those around them, with a carriage return or not."""
    new = []
    for kind, text in changes:
        if kind == " ":
            new.append(lines[place])
        if kind == "+":
            # The last line has no end.
            around = next((lines[at] for at in (place, place - 1, place - 2) if 0 <= at < len(lines) - 1), "")
            new.append(text if text.endswith("\r") or not around.endswith("\r") else f"{text}\r")
        else:
            place += 1
    return new


def find(lines, old, near):
    """Where lines are: the only place, or the one nearest to a line. None if there is no place, -1 for several without a line."""
    if not old:
        # Lines without old ones follow the line that is named. An empty file has one place.
        last = len(lines) - 1 if lines[-1] == "" else len(lines)
        return min(max(near + 1, 0), last) if near is not None else 0 if last == 0 else -1
    for same in (lambda line: line, str.rstrip):
        wanted = [same(line) for line in old]
        places, first = [], wanted[0]
        for place in range(len(lines) - len(old) + 1):
            if same(lines[place]) == first and [same(line) for line in lines[place : place + len(old)]] == wanted:
                places.append(place)
        if len(places) == 1:
            return places[0]
        if places:
            return -1 if near is None else min(places, key=lambda place: abs(place - near))
    return None
