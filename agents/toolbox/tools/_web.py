"""What the tools for addresses share: requests that reach only what was checked."""

import http.client
import ipaddress
import socket
import ssl
import urllib.error
import urllib.parse
import urllib.request

import _atlas

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
    if _atlas.setting("ALLOW_PRIVATE_ADDRESSES", "") not in ("1", "true", "yes") and not all(is_public(one[4][0]) for one in found):
        raise Refused(f"{_atlas.shown(host)} is a private address; an agent with the variable allow_private_addresses: true may read it")
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
        raise ValueError(f"{_atlas.shown(url[:200])!r} is no address with http or https")
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
        _atlas.fail(f"{_atlas.shown(url[:200])} answered {error.code} {error.reason}: {_atlas.shown(said)}")
    except (OSError, ValueError, http.client.HTTPException) as error:
        _atlas.fail(f"could not read {_atlas.shown(url[:200])}: {_atlas.shown(str(getattr(error, 'reason', error)))}")
    if len(body) > most:
        _atlas.fail(f"{_atlas.shown(url[:200])} has more than {most} bytes")
    return kind, body, charset


def decoded(body, charset="utf-8"):
    """Bytes as text."""
    try:
        return body.decode(charset, "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


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
            return False, _atlas.shown(str(getattr(error, "reason", error)))[:100]
    return False, "no answer"
