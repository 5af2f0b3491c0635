"""Tokens, and how that of a login is renewed: as atlasctl does it, and never by two programs at once."""

from __future__ import annotations

import base64
import json
import os
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

try:
    import fcntl
except ModuleNotFoundError:
    fcntl = None  # type: ignore[assignment]

from . import _context
from ._errors import Denied, Unreachable, text_of

#: Seconds before its end at which a token is renewed.
EARLY = 60
#: Most bytes of an answer of an issuer, and the longest wait for one.
ANSWER_MAX = 1 << 20
ANSWER_SECONDS = 30


def failed(why: str) -> Denied:
    return Denied(f"the login failed: {why}", code="E3207", hint="log in again: atlasctl login", retryable=False)


class ContextToken:
    """The token of a context of atlasctl, which somebody got by logging in."""

    def __init__(self, name: str, text: str, expires_at: float) -> None:
        self.name = name
        self.text = text
        self.ends: float | None = expires_at - EARLY
        self._lock = threading.Lock()

    def is_due(self) -> bool:
        """Whether the token must be renewed before it is used."""
        return self.ends is not None and time.time() >= self.ends

    def renew(self) -> str:
        """The token, renewed if its end is near. It blocks."""
        with self._lock:
            if self.is_due():
                self.text, self.ends = renewed(self.name)
            return self.text


def renewed(name: str) -> tuple[str, float | None]:
    """The token of a context and when to look at it again. One program asks the issuer, the others find what it wrote."""
    file = _context.path()
    if file is None:
        raise failed("HOME is not set")
    try:
        lock = os.open(f"{file}.lock", os.O_WRONLY | os.O_CREAT, 0o666)
    except OSError as error:
        raise failed(f'could not open "{file}.lock": {error.strerror}') from error
    try:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        config = _context.read()
        entry = _context.table(_context.table(config, "contexts"), name)
        token, login = text_of(entry, "token"), _context.table(entry, "login")
        if not token or not login:
            raise failed("somebody has logged out")
        ends = number(login.get("expires_at"))
        if ends is None:
            return token, None
        if time.time() + EARLY < ends:
            return token, ends - EARLY
        refresh = text_of(login, "refresh_token")
        if not refresh:
            raise failed("the token has expired")
        answer = ask(login, refresh)
        shown = "id_token" if login.get("shown") == "id_token" else "access_token"
        token = text_of(answer, shown)
        if not token:
            raise failed(f"the issuer gave no {shown.replace('_', ' ')} with the renewed login")
        ends = end_of(token)
        if ends is None and (seconds := number(answer.get("expires_in"))) is not None:
            ends = time.time() + seconds
        entry["token"] = token
        login.pop("expires_at", None)
        if ends is not None:
            login["expires_at"] = int(ends)
        # An issuer that gives no new refresh token keeps the one in use.
        if text_of(answer, "refresh_token"):
            login["refresh_token"] = answer["refresh_token"]
        _context.write(config)
        # The issuer may give tokens for less than the time by which others are renewed early.
        return token, None if ends is None else max(ends - EARLY, min(ends, time.time() + EARLY))
    finally:
        os.close(lock)


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """The refresh token goes to the issuer and nowhere else."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        return None


def ask(login: dict[str, Any], refresh: str) -> dict[str, Any]:
    """Asks the issuer for a new token."""
    url = text_of(login, "token_url")
    if not url.startswith(("https://", "http://")):
        raise failed(f'"{url}" is not the address of an issuer')
    pairs = {"grant_type": "refresh_token", "refresh_token": refresh, "client_id": text_of(login, "client_id")}
    headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
    request = urllib.request.Request(url, urllib.parse.urlencode(pairs).encode(), headers)
    try:
        with urllib.request.build_opener(NoRedirects).open(request, timeout=ANSWER_SECONDS) as answer:
            body, status = answer.read(ANSWER_MAX + 1), answer.status
    except urllib.error.HTTPError as error:
        body, status = error.read(ANSWER_MAX + 1), error.code
    except (OSError, ValueError) as error:
        raise Unreachable(f"could not reach the issuer at {url}: {error}", code="E4002", retryable=True) from error
    try:
        value = json.loads(body[: ANSWER_MAX + 1])
    except (ValueError, RecursionError):
        value = None
    if len(body) > ANSWER_MAX or not isinstance(value, dict) or status != 200:
        why = text_of(value, "error_description") or text_of(value, "error") or f"the issuer answered {status}"
        raise failed(why.replace(refresh, "[redacted:refresh_token]")[:500])
    return value


def number(value: Any) -> float | None:
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e15
    return float(value) if usable else None


def end_of(token: str) -> float | None:
    """The end of a token as its own claim `exp` says. The cluster checks the token; this is only about when to renew it."""
    parts = token.split(".")
    if len(parts) < 2:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return None
    return number(claims.get("exp")) if isinstance(claims, dict) else None
