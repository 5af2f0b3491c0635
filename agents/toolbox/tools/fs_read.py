"""Reads lines of a file."""

import os

import _atlas

LINE_MAX = 2000
WARN_FROM = 50 << 10


def run(path: str, offset: int = 1, limit: int = 2000) -> str:
    """Reads lines of a text file in the workspace, each with its number. Lists a folder.

    Args:
        path: The path of the file or folder
        offset: The number of the first line
        limit: How many lines are read
    """
    real = _atlas.inside(path)
    if os.path.isdir(real):
        return _atlas.listed(path)
    offset = _atlas.whole(offset, 1, 1, 1 << 40)
    limit = _atlas.whole(limit, 2000, 1, 2000)
    lines, number, size, more = [], 0, 0, False
    with _atlas.opened(path) as file:
        if _atlas.is_binary(file.read(8192)):
            _atlas.fail(f"{path!r} is a binary file")
        file.seek(0)
        total = os.fstat(file.fileno()).st_size
        # A line may be larger than memory, so only its beginning is kept.
        while start := file.readline(4 * LINE_MAX):
            number += 1
            rest = start
            while rest and not rest.endswith(b"\n"):
                rest = file.readline(1 << 20)
            if number < offset:
                continue
            if len(lines) >= limit or size > _atlas.TEXT_MAX:
                more = True
                break
            text = start.decode("utf-8", "replace").rstrip("\r\n")
            text = text[:LINE_MAX] + "…" if len(text) > LINE_MAX or rest is not start else text
            line = f"{number:>6}\t{_atlas.shown(text)}"
            lines.append(line)
            size += len(line)
    if not lines:
        return f"(the file has {number} lines)" if number else "(the file is empty)"
    if more:
        lines.append(f"(more lines follow: go on with offset {offset + len(lines)})")
    if total > WARN_FROM:
        lines.append(f"(the file is large, {total} bytes: search it with fs_grep instead of reading all of it)")
    return "\n".join(lines)
