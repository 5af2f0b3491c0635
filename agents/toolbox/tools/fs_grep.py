"""Finds lines in files."""

import os
import subprocess

import _atlas

HITS_MAX = 50
LINE_MAX = 300
BATCH = 200
LEFT_OUT = (".min.js", ".min.css", ".map", ".lock", "package-lock.json", "pnpm-lock.yaml", "go.sum")


def run(pattern: str, path: str = ".", include: str = "") -> str:
    """Finds the lines that match an extended regular expression, in the files of the workspace. Folders of dependencies and builds,
    minified and lock files are left out.

    Args:
        pattern: The extended regular expression
        path: The file or folder to search, by default the workspace
        include: A pattern for the names of files, such as *.py
    """
    if not pattern or len(pattern) > 2000 or "\0" in pattern or "\n" in pattern:
        _atlas.fail("the expression must be one line of at most 2000 characters")
    start = _atlas.inside(path)
    if os.path.isfile(start):
        paths = [start]
    else:
        wanted = _atlas.pattern(include) if include else None
        paths = [
            entry.path
            for entry in _atlas.files(start)
            if not entry.name.endswith(LEFT_OUT) and (wanted is None or wanted.fullmatch(entry.name))
        ]
    hits = []
    for place in range(0, len(paths), BATCH):
        hits.extend(search(pattern, paths[place : place + BATCH]))
        if len(hits) > HITS_MAX:
            break
    lines = hits[:HITS_MAX]
    if len(hits) > HITS_MAX:
        lines.append(f"(more than {HITS_MAX} lines match; use a narrower expression)")
    return "\n".join(lines) or "(no line matches)"


def search(pattern, paths):
    """The matches in some files. The program `grep` needs no more than linear time for any expression."""
    command = ["grep", "-EnHIZ", "-m", str(HITS_MAX + 1), "-e", pattern, "--", *paths]
    try:
        ended = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "LC_ALL": "C.UTF-8"})
    except OSError as error:
        _atlas.fail(f"could not start grep: {error}")
    hits = []
    while len(hits) <= HITS_MAX and (line := ended.stdout.readline(4 * LINE_MAX)):
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = ended.stdout.readline(1 << 20)
        name, _, found = line.partition(b"\0")
        if not found:
            continue
        text = found.decode("utf-8", "replace").rstrip("\r\n")
        hits.append(f"{_atlas.relative(os.fsdecode(name))}:{_atlas.shown(text[:LINE_MAX])}")
    ended.stdout.close()
    said = ended.stderr.read(1000).decode("utf-8", "replace").strip()
    if ended.wait() == 2 and not hits:
        _atlas.fail(f"the expression cannot be used: {_atlas.shown(said)}")
    return hits
