"""Which cluster, with which token and which certificates: as atlasctl finds them."""

from __future__ import annotations

import os
import re
import ssl
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from . import _toml
from ._errors import BadSettings

SERVER_DEFAULT = "http://127.0.0.1:7400"
#: Most bytes of the file of contexts.
FILE_MAX = 1 << 20
#: What the header with a token can have.
TOKEN = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True)
class Server:
    """The address of a controller."""

    tls: bool
    host: str
    port: int
    #: What comes before the paths of the interface.
    prefix: str

    @property
    def where(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass
class Settings:
    """What a client needs to know of its cluster."""

    servers: list[Server]
    token: str | None = None
    #: The context whose login gave the token, and the end of the token, if it can be renewed.
    login: tuple[str, float] | None = None
    namespace: str | None = None
    ca: dict[str, Any] = field(default_factory=dict)

    def tls(self) -> ssl.SSLContext | None:
        """The certificates that are trusted: the given ones alone, otherwise those of this machine."""
        if not any(server.tls for server in self.servers):
            return None
        try:
            context = ssl.create_default_context(**self.ca)
        except (OSError, ValueError) as error:
            raise BadSettings(f"the certificates to trust cannot be read: {error}") from error
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        return context


def find(
    servers: str | list[str] | None,
    token: str | None,
    context: str | None,
    namespace: str | None,
    ca_file: str | os.PathLike[str] | None,
    environment: dict[str, str] | None = None,
) -> Settings:
    """Arguments first, then variables, then the context: an address before the name of a context."""
    env = os.environ if environment is None else environment
    named = servers or (None if context else env.get("ATLAS_SERVER") or None)
    entry: dict[str, Any] = {}
    name = None
    if named is None:
        config = read()
        name = context or env.get("ATLAS_CONTEXT") or config.get("current")
        if name is not None:
            entry = table(table(config, "contexts"), str(name))
            if not isinstance(entry.get("server"), str):
                raise BadSettings(f'no such context: "{name}"', code="E0124", hint="list them: atlasctl context list")
            named = entry.get("server")
    token = token or env.get("ATLAS_TOKEN") or None
    login = None
    if token is None and entry:
        token = entry.get("token")
        saved = table(entry, "login")
        ends = saved.get("expires_at")
        login = (str(name), float(ends)) if saved.get("refresh_token") and isinstance(ends, int) else None
    ca: dict[str, str] = {}
    if path := ca_file or env.get("ATLAS_CA_FILE") or entry.get("ca_file"):
        ca = {"cafile": os.fspath(path)}
    elif entry.get("ca"):
        ca = {"cadata": entry["ca"]}
    if token is not None and not (isinstance(token, str) and TOKEN.fullmatch(token := token.strip())):
        # Without the text: it may be most of a token.
        raise BadSettings("the token has characters that no token has")
    namespace = namespace or env.get("ATLAS_NAMESPACE") or None
    return Settings(addresses(named or SERVER_DEFAULT), token, login, namespace, ca)


def addresses(named: str | list[str]) -> list[Server]:
    """Reads addresses: with or without a scheme, as a list or with commas between them."""
    texts = named.split(",") if isinstance(named, str) else named
    found = [address(text.strip()) for text in texts if text.strip()]
    if not found:
        raise BadSettings("no address of a controller is given")
    return found


def address(text: str) -> Server:
    url = urlsplit(text if "://" in text else f"http://{text}")
    try:
        port = url.port
    except ValueError as error:
        raise BadSettings(f'"{text}" is not an address: {error}') from error
    if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment:
        raise BadSettings(f'"{text}" is not the address of a controller, such as https://10.0.0.1:7400')
    if url.username is not None or url.password is not None:
        raise BadSettings("an address has no user and no password here: give a token")
    tls = url.scheme == "https"
    return Server(tls, url.hostname, port or (443 if tls else 80), url.path.rstrip("/"))


def path() -> Path | None:
    """Where atlasctl keeps its contexts."""
    if given := os.environ.get("ATLAS_CONFIG"):
        return Path(given)
    if folder := os.environ.get("XDG_CONFIG_HOME"):
        return Path(folder) / "atlas/config.toml"
    home = os.environ.get("HOME")
    return Path(home) / ".config/atlas/config.toml" if home else None


def read() -> dict[str, Any]:
    """The file of contexts; empty if there is none."""
    file = path()
    if file is None:
        return {}
    try:
        with open(file, "rb") as opened:
            mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
            if mode & 0o077 and os.name == "posix":
                why = f'"{file}" can be read or changed by other users (mode {mode:04o})'
                raise BadSettings(why, code="E0122", hint=f"restrict it: chmod 600 {file}")
            data = opened.read(FILE_MAX + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise BadSettings(f'could not read "{file}": {error.strerror}') from error
    try:
        if len(data) > FILE_MAX:
            raise ValueError(f"it is longer than {FILE_MAX} bytes")
        return _toml.loads(data.decode("utf-8"))
    except ValueError as error:
        raise BadSettings(f'"{file}" cannot be used: {error}', code="E0123") from error


def write(config: dict[str, Any]) -> None:
    """Writes the file of contexts, completely or not at all, for the owner alone."""
    file = path()
    if file is None:
        raise BadSettings("no configuration folder: HOME is not set", code="E0123")
    partial = f"{file}.{os.getpid()}.new"
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "w", encoding="utf-8", newline="") as opened:
                opened.write(_toml.dumps(config))
                opened.flush()
                os.fsync(opened.fileno())
            os.replace(partial, file)
        except BaseException:
            os.unlink(partial)
            raise
    except OSError as error:
        raise BadSettings(f'could not write "{file}": {error.strerror}') from error


def table(value: Any, name: str) -> dict[str, Any]:
    """A member that is a table; empty if it is none."""
    member = value.get(name) if isinstance(value, dict) else None
    return member if isinstance(member, dict) else {}
