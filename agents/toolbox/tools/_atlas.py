"""What the packaged tools share: paths that stay in the workspace, limits, programs and requests.

These rules keep a model from mistakes. They are no isolation: a program that a tool starts can do what the worker's user can do.
"""

import http.client
import ipaddress
import os
import re
import socket
import ssl
import stat
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request

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


def shown(text):
    """A line without control characters."""
    return "".join(sign if sign == "\t" or ord(sign) >= 32 and ord(sign) != 127 else f"\\x{ord(sign):02x}" for sign in text)


def relative(path):
    """A path as the model sees it."""
    return shown(os.path.relpath(path, root()).encode("utf-8", "backslashreplace").decode())


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


def text_of(path, most=FILE_MAX):
    """The text of a file."""
    with opened(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        fail(f"{path!r} has more than {most} bytes; read a part of it with fs_read")
    if is_binary(data[:8192]):
        fail(f"{path!r} is a binary file")
    return data.decode("utf-8", "replace")


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
        mode = stat.S_IMODE(os.stat(target).st_mode)
        with opened(path) as file:
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


def files(start, hidden=False):
    """All files below a folder, without links to folders and without folders that hold no sources."""
    count = 0
    waiting = [(start, 0)]
    while waiting:
        folder, depth = waiting.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            count += 1
            if count > ENTRIES_MAX:
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
    return status, "\n".join(shown(line.rstrip("\r")) for line in text.split("\n"))


def said(status, text):
    """What a program said, and how it ended."""
    if status is None:
        return f"{text}\n[ended after {SECONDS_MAX} s]"
    return text if status == 0 and text else f"{text}\n[exit status {status}]".lstrip("\n")


# Networks that are global by their numbers, and stand for addresses of IPv4 that may be private, or are no longer in use.
ELSEWHERE = [ipaddress.ip_network(network) for network in ("::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16", "fec0::/10")]


class Refused(OSError):
    """An address that may not be reached."""


def is_public(address):
    """Whether an IP address is one of the internet, and no other way into the worker's network."""
    ip = ipaddress.ip_address(address.split("%")[0])
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in ELSEWHERE)


def connected(host, port, timeout):
    """A connection to a host. The name is resolved once, so what is checked is what is reached."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    if setting("ALLOW_PRIVATE_ADDRESSES", "") not in ("1", "true", "yes") and not all(is_public(one[4][0]) for one in found):
        raise Refused(f"{shown(host)} is a private address; an agent with the variable allow_private_addresses: true may read it")
    failed = OSError("the host has no address")
    for family, kind, protocol, _, place in found:
        one = socket.socket(family, kind, protocol)
        try:
            one.settimeout(timeout)
            one.connect(place)
            return one
        except OSError as error:
            one.close()
            failed = error
    raise failed


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = connected(self.host, self.port, self.timeout)


class SecureConnection(http.client.HTTPSConnection, Connection):
    """Connects as the class above, then speaks TLS."""


class Plain(urllib.request.HTTPHandler):
    def http_open(self, request):
        return self.do_open(Connection, request)


class Secure(urllib.request.HTTPSHandler):
    def https_open(self, request):
        return self.do_open(SecureConnection, request, context=ssl.create_default_context())


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to addresses with http and https alone."""

    def redirect_request(self, request, file, code, message, headers, url):
        try:
            address_of(url)
        except ValueError as error:
            raise Refused(str(error)) from error
        return super().redirect_request(request, file, code, message, headers, url)


def address_of(url):
    """An address with http or https in ASCII: its host as the name service knows it, other signs escaped."""
    try:
        parts = urllib.parse.urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and not any(ord(sign) < 32 for sign in url) and " " not in parts.netloc
        host = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode()
    except ValueError:
        usable = False
    if not usable:
        raise ValueError(f"{shown(url[:200])!r} is no address with http or https")
    return urllib.parse.quote(parts._replace(netloc=host).geturl(), safe="%/:=&?~#+!$,;'@()*[]|")


def answer_of(url, data=None, headers=(), configured=False, seconds=30, method=None):
    """The answer of an address. A `configured` one was set by people: it may be private, and be reached through a proxy."""
    request = urllib.request.Request(address_of(url), data, {"User-Agent": "atlas-tools/1"}, method=method)
    for name, value in dict(headers).items():
        # A redirect may lead to others, who must not get a key.
        request.add_unredirected_header(name, value)
    handlers = [] if configured else [urllib.request.ProxyHandler({}), Plain, Secure]
    return urllib.request.build_opener(Redirects, *handlers).open(request, timeout=seconds)


def fetch(url, data=None, headers=(), configured=False, seconds=30, most=4 << 20):
    """Reads an address: its type and its bytes."""
    try:
        with answer_of(url, data, headers, configured, seconds) as answer:
            body = answer.read(most + 1)
            if answer.length and len(body) <= most:
                raise OSError(f"{answer.length} bytes are missing")
            kind = answer.headers.get_content_type()
            charset = answer.headers.get_content_charset() or "utf-8"
    except urllib.error.HTTPError as error:
        said = error.read(500).decode("utf-8", "replace")
        fail(f"{shown(url[:200])} answered {error.code} {error.reason}: {shown(said)}")
    except (OSError, ValueError, http.client.HTTPException) as error:
        fail(f"could not read {shown(url[:200])}: {shown(str(getattr(error, 'reason', error)))}")
    if len(body) > most:
        fail(f"{shown(url[:200])} has more than {most} bytes")
    return kind, body, charset


def decoded(body, charset="utf-8"):
    """Bytes as text."""
    try:
        return body.decode(charset, "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def cut(text, most=TEXT_MAX):
    """The beginning of a text."""
    return text if len(text) <= most else text[:most] + f"\n[cut: {len(text) - most} characters are left out]"


def shown_lines(lines):
    """Lines without control characters."""
    return "\n".join(shown(line) for line in lines)


def exists(url, seconds):
    """Whether an address answers, and otherwise why not."""
    for method in ("HEAD", "GET"):
        try:
            with answer_of(url, seconds=seconds, method=method):
                return True, ""
        except urllib.error.HTTPError as error:
            # Some servers do not know HEAD.
            if method == "GET" or error.code not in (403, 405, 501):
                return False, str(error.code)
        except (OSError, ValueError, http.client.HTTPException) as error:
            return False, shown(str(getattr(error, "reason", error)))[:100]
    return False, "no answer"
