"""What the packaged tools share: paths that stay in the workspace, limits, searches and programs.

These rules keep a model from mistakes. They are no isolation: a program that a tool starts can do what the worker's user can do.
"""

import contextlib
import os
import re
import signal
import stat
import subprocess
import sys
import threading

# Bytes of a file that is read or written as a whole, and of a text for the model.
FILE_MAX = 8 << 20
TEXT_MAX = 200 << 10
# Files and folders that a search looks at, and how deep.
ENTRIES_MAX = 100_000
DEPTH_MAX = 40
# Folders that searches leave out.
SKIPPED = {
    ".git", ".hg", ".svn", "node_modules", "target", "dist", "build", "vendor", "__pycache__", ".venv", "venv",
    ".tox", ".mypy_cache", ".pytest_cache", ".gradle", ".idea", ".next", "coverage",
}
SECONDS_MAX = 100
# Seconds of a search, and stars in one part of a pattern.
SEARCH_SECONDS = 30
STARS_MAX = 8
# All control characters but tabs, and bytes of names that are no UTF-8.
CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff]")


def fail(text):
    """Ends the tool with an error that the model reads."""
    print(text, file=sys.stderr)
    sys.exit(1)


def setting(name, default=None):
    """A setting: a variable of the agent, or of the environment."""
    return os.environ.get(f"LLM_AGENT_VAR_{name}") or os.environ.get(name) or default


def whole(value, default, least, most):
    """A whole number within bounds."""
    try:
        return max(least, min(most, int(value)))
    except (TypeError, ValueError, OverflowError):
        return default


def root():
    """The folder of the project: all paths are below it. It is the workspace of the attempt, or the folder that the variable
    `project_dir` of the agent names. One outside the workspace must be below a folder that the worker opens in ATLAS_PROJECTS."""
    top = os.path.realpath(os.getcwd())
    project = os.path.realpath(os.path.join(top, os.environ.get("LLM_AGENT_VAR_PROJECT_DIR") or "."))
    opened = [os.path.realpath(folder) for folder in os.environ.get("ATLAS_PROJECTS", "").split(":") if folder]
    if not any(is_below(project, folder) for folder in [top, *opened]):
        fail(f"the worker does not open the folder {project}: its operator names such folders in ATLAS_PROJECTS")
    return project


def is_below(path, folder):
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def inside(path, follow=True):
    """The real path of a file of the workspace. Links are followed as long as they stay inside; with `follow=False` the last part is
    not followed."""
    if not isinstance(path, str) or not path or any(ord(sign) < 32 or ord(sign) == 127 for sign in path):
        fail(f"{path!r} is not a path")
    if len(path) > 4096:
        fail("the path has more than 4096 characters")
    top = root()
    joined = os.path.join(top, os.path.expanduser(path) if path.startswith("~") else path)
    try:
        if follow:
            real = os.path.realpath(joined)
        else:
            joined = os.path.normpath(joined)
            real = os.path.join(os.path.realpath(os.path.dirname(joined)), os.path.basename(joined))
    except (OSError, ValueError) as error:
        fail(f"{path!r} is not a path: {error}")
    if not is_below(real, top):
        fail(f"{path!r} is outside the workspace; use a path below {top}")
    return real


def shown(line):
    """A line without control characters."""
    return CONTROLS.sub(lambda found: escaped(ord(found[0])), line)


def escaped(number):
    """A sign as a text. Bytes that are no UTF-8 are numbers from 0xdc80."""
    return f"\\x{number - 0xDC00 if 0xDC80 <= number <= 0xDCFF else number:02x}"


def shown_text(text):
    """Lines without control characters. All that models read of files, programs and servers goes through this or the above."""
    return "\n".join(shown(line.rstrip("\r")) for line in text.split("\n"))


def relative(path):
    """A path as the model sees it."""
    return shown(os.path.relpath(path, root()))


def listed(path, most=2000):
    """The names in a folder: those of folders end with a slash, those of links with an @."""
    try:
        entries = sorted(os.scandir(inside(path)), key=lambda entry: entry.name)
    except OSError as error:
        fail(f"could not list {path!r}: {error.strerror}")
    kind = lambda entry: "@" if entry.is_symlink() else "/" if entry.is_dir() else ""
    lines = [shown(entry.name) + kind(entry) for entry in entries[:most]]
    if len(entries) > most:
        lines.append(f"({len(entries) - most} more)")
    return "\n".join(lines) or "(empty)"


def opened(path):
    """An open regular file. Pipes and devices would wait, or never end."""
    try:
        number = os.open(inside(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        fail(f"could not read {path!r}: {error.strerror}")
    if not stat.S_ISREG(os.fstat(number).st_mode):
        fail(f"{path!r} is not a regular file")
    return os.fdopen(number, "rb")


def is_binary(start):
    """Whether bytes are no text."""
    return b"\0" in start


def text_of(path, most=FILE_MAX, strict=False):
    """The text of a file. A strict one is UTF-8, so that it can be written again as it was."""
    with opened(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        fail(f"{path!r} has more than {most} bytes; read a part of it with fs_read")
    if is_binary(data[:8192]):
        fail(f"{path!r} is a binary file")
    try:
        return data.decode("utf-8", "strict" if strict else "replace")
    except UnicodeDecodeError:
        fail(f"{path!r} is not UTF-8; nothing was changed")


def write(path, contents):
    """Writes a file of the workspace as a whole: a reader sees the old or the new text. Returns the old text; none for a new file."""
    data = contents.encode("utf-8", "surrogatepass")
    if len(data) > FILE_MAX:
        fail(f"the contents have more than {FILE_MAX} bytes")
    target = inside(path)
    if target == root() or os.path.isdir(target):
        fail(f"{path!r} is a folder")
    old, mode = None, 0o644
    if os.path.lexists(target):
        with opened(path) as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            old = file.read(FILE_MAX).decode("utf-8", "replace")
    beside = f"{target}.{os.getpid()}.new"
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        with os.fdopen(number, "wb") as file:
            file.write(data)
        os.chmod(beside, mode)
        os.replace(beside, target)
    except OSError as error:
        if os.path.lexists(beside):
            os.unlink(beside)
        fail(f"could not write {path!r}: {error.strerror}")
    return old


class TimeUp(Exception):
    """The time of a search has ended."""


@contextlib.contextmanager
def limited(notes):
    """A search of limited time. If the time ends, the search does, and a note says so."""

    def end(*_):
        raise TimeUp

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, SEARCH_SECONDS)
    try:
        yield
    except TimeUp:
        notes.append(f"(the search ended after {SEARCH_SECONDS} s)")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def limit_memory(most):
    """Limits the memory of the tool and of the programs that it starts, where the system can."""
    try:
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    except (ImportError, OSError, ValueError):
        pass


def files(start, notes, hidden=False):
    """All files below a folder, without links to folders and without folders that hold no sources. A note says if there are more."""
    count = 0
    waiting = [(start, 0)]
    while waiting:
        folder, depth = waiting.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            if folder == start:
                fail(f"could not list {relative(start)!r}: {error.strerror}")
            continue
        for entry in entries:
            count += 1
            if count > ENTRIES_MAX:
                notes.append(f"(the search ended after {ENTRIES_MAX} entries)")
                return
            if entry.is_dir(follow_symlinks=False):
                if depth < DEPTH_MAX and entry.name not in SKIPPED and (hidden or not entry.name.startswith(".")):
                    waiting.append((entry.path, depth + 1))
            elif entry.is_file(follow_symlinks=False):
                yield entry


def pattern(glob):
    """A pattern for paths, such as `src/**/*.py` or `*.{ts,tsx}`. `*` stops at a slash."""
    if len(glob) > 1000:
        fail("the pattern has more than 1000 characters")
    # Each of them multiplies the ways in which a name can match.
    if max(part.count("*") for part in glob.replace("**/", "").split("/")) > STARS_MAX or glob.count("**") > STARS_MAX:
        fail(f"the pattern has more than {STARS_MAX} stars in one part")
    made, place, braces = "", 0, 0
    while place < len(glob):
        sign = glob[place]
        if glob.startswith("**/", place):
            made, place = made + "(?:[^/]+/)*", place + 3
            continue
        if glob.startswith("**", place):
            made, place = made + ".*", place + 2
            continue
        end = glob.find("]", place + 2)
        if sign == "*":
            made += "[^/]*"
        elif sign == "?":
            made += "[^/]"
        elif sign == "[" and end > 0:
            inner = glob[place + 1 : end]
            inner = "^" + inner[1:] if inner[0] in "!^" else inner
            made, place = made + "[" + inner.replace("\\", "\\\\").replace("[", "\\[") + "]", end
        elif sign == "{":
            made, braces = made + "(?:", braces + 1
        elif sign == "}" and braces:
            made, braces = made + ")", braces - 1
        elif sign == "," and braces:
            made += "|"
        else:
            made += re.escape(sign)
        place += 1
    try:
        return re.compile(made + ")" * braces, re.DOTALL)
    except re.error as error:
        fail(f"{glob!r} is not a pattern: {error}")


def run(command, given="", seconds=SECONDS_MAX, environment=None):
    """Runs a program in the workspace: its exit status and its output, of which the beginning and the end are kept. What it leaves
    running ends with the tool."""
    variables = dict(environment if environment is not None else os.environ)
    for name in ("CLICOLOR_FORCE", "FORCE_COLOR", "LLM_OUTPUT"):
        variables.pop(name, None)
    variables["NO_COLOR"] = "1"
    try:
        process = subprocess.Popen(
            command, cwd=root(), env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except (OSError, ValueError) as error:
        fail(f"could not start {command[0]}: {error}")
    first, last, lost = bytearray(), bytearray(), [0]
    half = TEXT_MAX // 4

    def read():
        while piece := process.stdout.read1(65536):
            room = half - len(first)
            first.extend(piece[:room])
            last.extend(piece[room:] if room < len(piece) else b"")
            if len(last) > half:
                lost[0] += len(last) - half
                del last[: len(last) - half]

    def feed():
        try:
            process.stdin.write(given.encode("utf-8", "surrogatepass"))
            process.stdin.close()
        except (OSError, ValueError):
            pass

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    threading.Thread(target=feed, daemon=True).start()
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        status = None
    # Whoever was left running may hold the pipe.
    reader.join(0.5 if status is not None else 0.1)
    middle = f"\n[{lost[0]} bytes are left out]\n" if lost[0] else ""
    text = bytes(first).decode("utf-8", "replace") + middle + bytes(last).decode("utf-8", "replace")
    return status, shown_text(text)


def said(status, text):
    """What a program said, and how it ended."""
    if status is None:
        return f"{text}\n[ended after {SECONDS_MAX} s]"
    return text if status == 0 and text else f"{text}\n[exit status {status}]".lstrip("\n")


def cut(text, most=TEXT_MAX):
    """The beginning of a text, without control characters."""
    return shown_text(text[:most]) + (f"\n[cut: {len(text) - most} characters are left out]" if len(text) > most else "")
