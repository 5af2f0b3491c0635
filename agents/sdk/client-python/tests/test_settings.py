"""Which cluster, token and certificates are used; logins and their renewal; the file of contexts."""

from __future__ import annotations

import base64
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from urllib.parse import parse_qs

from atlas_client import BadSettings, Client, Denied, Unreachable
from atlas_client import _toml
from atlas_client._context import find
from atlas_client._login import end_of

from .fake import Server, answer
from .support import Case


class Folder(Case):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.file = self.folder / "config.toml"
        os.environ["ATLAS_CONFIG"] = str(self.file)

    def write(self, text: str, mode: int = 0o600) -> None:
        self.file.write_text(text)
        self.file.chmod(mode)


CONTEXTS = """
current = "work"
[contexts.work]
server = "http://w1:1,http://w2:2"
token = "token-of-work"
ca = '''
-----BEGIN'''
[contexts."ho.me"]
server = "http://h:1"
"""


class Contexts(Folder):
    def shown(self, **arguments) -> tuple:
        given = {"servers": None, "token": None, "context": None, "namespace": None, "ca_file": None, **arguments}
        found = find(**given)
        return [server.where for server in found.servers], found.token, found.ca, found.namespace

    def test_arguments_come_before_variables_and_those_before_the_context(self) -> None:
        self.assertEqual(self.shown(), (["127.0.0.1:7400"], None, {}, None))
        self.write(CONTEXTS)
        work = (["w1:1", "w2:2"], "token-of-work", {"cadata": "-----BEGIN"}, None)
        self.assertEqual(self.shown(), work)
        self.assertEqual(self.shown(context="ho.me"), (["h:1"], None, {}, None))
        # The token of a context goes to the addresses of the context alone.
        self.assertEqual(self.shown(servers="s:1"), (["s:1"], None, {}, None))
        os.environ["ATLAS_SERVER"] = "e:1"
        self.assertEqual(self.shown(), (["e:1"], None, {}, None))
        self.assertEqual(self.shown(context="work"), work)
        os.environ.update(ATLAS_TOKEN="token-of-e", ATLAS_CA_FILE="/ca.pem", ATLAS_NAMESPACE="team")
        self.assertEqual(self.shown(), (["e:1"], "token-of-e", {"cafile": "/ca.pem"}, "team"))
        self.assertEqual(self.shown(token="mine")[1], "mine")
        os.environ.update(ATLAS_SERVER="", ATLAS_CONTEXT="ho.me")
        self.assertEqual(self.shown()[0], ["h:1"])

    def test_what_cannot_be_used_is_told(self) -> None:
        for text, mode, why in (
            (CONTEXTS, 0o644, "can be read or changed by other users (mode 0644)"),
            ("[contexts.", 0o600, "cannot be used"),
            ("a = [\n\xff", 0o600, "cannot be used"),
            ("current = 'gone'", 0o600, 'no such context: "gone"'),
            ("current = 'gone'\ncontexts = 7", 0o600, 'no such context: "gone"'),
        ):
            self.write(text, mode)
            with self.subTest(why=why), self.assertRaises(BadSettings) as caught:
                Client()
            self.assertIn(why, str(caught.exception))
        with self.assertRaises(BadSettings) as caught:
            Client("http://a", token="hu\nsh")
        self.assertNotIn("hu", str(caught.exception))


def token(claims: dict) -> str:
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.c2ln"


class Logins(Folder):
    def login(self, issuer: str, ends: float, more: str = "") -> None:
        self.write(
            f"""current = "work"
[contexts.work]
server = "{self.server.address}"
token = "old"
[contexts.work.login]
issuer = "{issuer}"
client_id = "atlasctl"
token_url = "{issuer}/token"
shown = "id_token"
expires_at = {int(ends)}
refresh_token = "refresh-1"
{more}
[contexts.other]
server = "http://other:1"
"""
        )

    def setUp(self) -> None:
        super().setUp()
        self.server = Server(lambda *_: answer({}))
        self.addCleanup(self.server.__exit__)

    def tokens(self) -> list[str]:
        return [request.headers["authorization"] for request in self.server.requests]

    def test_a_token_is_renewed_once_by_all_and_kept(self) -> None:
        fresh = token({"exp": time.time() + 3600})
        given = {"access_token": "opaque", "id_token": fresh, "refresh_token": "refresh-2", "expires_in": 60}
        with Server(lambda *_: answer(given)) as issuer:
            self.login(issuer.address, time.time() + 30)
            clients = [Client() for _ in range(4)]
            threads = [threading.Thread(target=client.api.version) for client in clients for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(self.tokens(), [f"Bearer {fresh}"] * 12)
            self.assertEqual(len(issuer.requests), 1)
            sent = parse_qs(issuer.requests[0].body.decode())
            self.assertEqual(sent, {"grant_type": ["refresh_token"], "refresh_token": ["refresh-1"], "client_id": ["atlasctl"]})
            for client in clients:
                client.close()
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o600)
        config = _toml.loads(self.file.read_text())
        self.assertEqual(config["contexts"]["other"], {"server": "http://other:1"})
        work = config["contexts"]["work"]
        self.assertEqual((work["token"], work["login"]["refresh_token"]), (fresh, "refresh-2"))
        self.assertEqual(sorted(os.listdir(self.folder)), ["config.toml", "config.toml.lock"])

    def test_a_token_that_has_time_left_is_used_as_it_is(self) -> None:
        self.login("http://127.0.0.1:1", time.time() + 3600)
        with Client() as client:
            client.api.version()
        self.assertEqual(self.tokens(), ["Bearer old"])
        self.assertEqual(os.listdir(self.folder), ["config.toml"])

    def test_an_issuer_that_refuses_is_told_without_secrets(self) -> None:
        said = [answer({"error": "invalid_grant: refresh-1"}, 400), answer([]), answer({}), answer({}, 302, Location="http://x/")]
        for one in said:
            with Server(lambda *_, one=one: one) as issuer, self.subTest(one=one):
                self.login(issuer.address, 0)
                with Client() as client, self.assertRaises(Denied) as caught:
                    client.api.version()
                self.assertEqual(caught.exception.code, "E3207")
                self.assertNotIn("refresh-1", str(caught.exception))
        self.assertEqual(self.server.requests, [])
        self.login("http://127.0.0.1:1", 0)
        with Client(deadline=0.2) as client:
            self.assertRaises(Unreachable, client.api.version)

    def test_tokens_say_when_they_end(self) -> None:
        self.assertEqual(end_of(token({"exp": 1000})), 1000)
        for other in (token({"exp": "1000"}), token([]), "opaque", "a.b.c", "", "..", "a.[[[[.b"):
            self.assertIsNone(end_of(other))


class Toml(unittest.TestCase):
    WRITTEN = '''# written by hand
current = "a\\u00e9\\n\\"b" # so
hints = false
[contexts]
[contexts.'x y']
server="s" \t
token = """
first \\
   # second
third"""
n = [1, -2.5e3, "]", [ ], # and
 true]
z = { a.b = 1, "c" = 'raw\\n' }
literal = \'\'\'it's\'\'\'
'''

    def test_what_people_write_is_read(self) -> None:
        expected = {
            "current": 'aé\n"b',
            "hints": False,
            "contexts": {
                "x y": {
                    "server": "s",
                    "token": "first # second\nthird",
                    "n": [1, -2500.0, "]", [], True],
                    "z": {"a": {"b": 1}, "c": "raw\\n"},
                    "literal": "it's",
                }
            },
        }
        self.assertEqual(_toml.Reader(self.WRITTEN).document(), expected)
        self.assertEqual(_toml.loads(self.WRITTEN), expected)

    def test_what_is_written_is_read(self) -> None:
        document = {"a": '\x00\x1f\x7f"\\é😀\n', "n": -7, "w": True, "t": {"x.y": {"k": "v", "l": ["a"]}, "empty": {}}}
        text = _toml.dumps(document)
        self.assertEqual(_toml.Reader(text).document(), document)
        self.assertEqual(_toml.loads(text), document)

    def test_what_is_wrong_names_its_line(self) -> None:
        for text in ("\na", "\na = ", "\na = 'x", "\n[a", "\na = 1\na = 2", "\n[[a]]", "\na = \"\\q\"", "\na = 1 2", "\na.b.", "\na = [" + "[" * 50):
            with self.subTest(text=text), self.assertRaises(ValueError) as caught:
                _toml.Reader(text).document()
            self.assertRegex(str(caught.exception), "^line [23]: ")


@unittest.skipIf(shutil.which("openssl") is None, "openssl makes the certificates")
class Tls(Folder):
    def test_the_given_authority_is_trusted_alone(self) -> None:
        key, certificate = self.folder / "key.pem", self.folder / "ca.pem"
        subject = ["-subj", "/CN=c1", "-addext", "subjectAltName=DNS:localhost"]
        make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        subprocess.run([*make, *subject, "-keyout", key, "-out", certificate], check=True, capture_output=True)
        serve = f"""
import http.server, ssl
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers(); self.wfile.write(b"{{}}")
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain({str(certificate)!r}, {str(key)!r})
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
        process = subprocess.Popen([sys.executable, "-c", serve], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        port = process.stdout.readline().strip()

        def test(client) -> None:
            with client(f"https://localhost:{port}", ca_file=certificate) as atlas:
                self.assertEqual([atlas.api("version"), atlas.api("version")], [{}, {}])
            for address, ca in ((f"https://127.0.0.1:{port}", certificate), (f"https://localhost:{port}", None)):
                with client(address, ca_file=ca) as atlas, self.assertRaises(Unreachable) as caught:
                    atlas.api("version")
                self.assertEqual((caught.exception.code, caught.exception.retryable), ("E4013", False))

        self.both(test)
        self.write("no certificate")
        self.assertRaises(BadSettings, Client, "https://a", ca_file=self.file)
