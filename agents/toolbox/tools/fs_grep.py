"""Finds lines in files."""

import os
import subprocess
import tempfile

import _atlas

HITS_MAX = 50
LINE_MAX = 300
BATCH = 200
# Bytes that grep may use.
MEMORY_MAX = 1 << 30
LEFT_OUT = (".min.js", ".min.css", ".map", ".lock", "package-lock.json", "pnpm-lock.yaml", "go.sum")


def run(pattern: str, path: str = ".", include: str = "") -> str:
    """Finds the lines that match an extended regular expression, in the files of the workspace. Hidden folders, those of dependencies and
    builds, minified and lock files are left out.

    Args:
        pattern: The extended regular expression
        path: The file or folder to search, by default the workspace
        include: A pattern for the names of files, such as *.py
    """
    if not pattern or len(pattern) > 2000 or "\0" in pattern or "\n" in pattern:
        _atlas.fail("the expression must be one line of at most 2000 characters")
    start = _atlas.inside(path)
    wanted = _atlas.pattern(include) if include else None
    hits, notes = [], []
    _atlas.limit_memory(MEMORY_MAX)
    with _atlas.limited(notes):
        if os.path.isfile(start):
            paths = [start]
        else:
            entries = _atlas.files(start, notes)
            matching = (one for one in entries if not one.name.endswith(LEFT_OUT) and (wanted is None or wanted.fullmatch(one.name)))
            paths = [entry.path for entry in matching]
        for place in range(0, len(paths), BATCH):
            search(pattern, paths[place : place + BATCH], hits)
            if len(hits) > HITS_MAX:
                break
    lines = hits[:HITS_MAX]
    if len(hits) > HITS_MAX:
        lines.append(f"(more than {HITS_MAX} lines match; use a narrower expression)")
    return "\n".join([*(lines or ["(no line matches)"]), *notes])


def search(pattern, paths, hits):
    """Adds the matches in some files. An expression can take grep endless time and memory, which the caller limits."""
    command = ["grep", "-EnHIZs", "-m", str(HITS_MAX + 1), "-e", pattern, "--", *paths]
    with tempfile.TemporaryFile() as errors:
        try:
            grep = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env={**os.environ, "LC_ALL": "C.UTF-8"})
        except OSError as error:
            _atlas.fail(f"could not start grep: {error}")
        try:
            read(grep.stdout, hits)
            if len(hits) > HITS_MAX:
                return
            status = grep.wait()
        finally:
            grep.kill()
            grep.wait()
        if status not in (0, 1) and not hits:
            errors.seek(0)
            said = errors.read(1000).decode("utf-8", "replace").strip()
            # A file that cannot be read is no error of the expression.
            if said or status != 2:
                _atlas.fail(f"the expression cannot be used: {_atlas.shown(said) or f'grep ended with {status}'}")


def read(output, hits):
    while len(hits) <= HITS_MAX and (line := output.readline(4 * LINE_MAX)):
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = output.readline(1 << 20)
        name, _, found = line.partition(b"\0")
        if found:
            text = found.decode("utf-8", "replace").rstrip("\r\n")
            hits.append(f"{_atlas.relative(os.fsdecode(name))}:{_atlas.shown(text[:LINE_MAX])}")
