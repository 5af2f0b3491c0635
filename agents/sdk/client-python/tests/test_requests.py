"""Which controller is asked, how often, and what is made of hostile answers."""

from __future__ import annotations

import asyncio
import socket
import time

from atlas_client import BadAnswer, BadSettings, Busy, Client, Conflict, Invalid, NotFound, Unavailable, Unreachable
from atlas_client._client import AsyncClient
from atlas_client._core import path_of
from atlas_client._http import LINE_MAX

from .fake import CLOSE, Server, answer, problem
from .support import QUICK, Both, Case


def nobody() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


class Repeats(Case):
    def test_a_submission_has_one_key_over_all_repeats(self) -> None:
        def test(client) -> None:
            # It is lost, refused by a controller without a leader, cut off within the answer, and then taken.
            said = [[CLOSE], problem("E4001", 503), [answer({"id": "job-1"}, 201)[:-3], CLOSE], answer({"id": "job-1"}, 201)]
            with Server(lambda _, number: said[number]) as server, client(server.address) as atlas:
                self.assertEqual(atlas.submit("a", {"x": 1}), "job-1")
                keys = {request.headers["idempotency-key"] for request in server.requests}
                self.assertEqual((len(server.requests), len(keys)), (4, 1))
                self.assertEqual({request.body for request in server.requests}, {server.requests[0].body})
                server.answer = lambda _, number: answer({"id": "job-2"}, 201)
                atlas.submit("a", {"x": 1})
                self.assertNotIn(server.requests[-1].headers["idempotency-key"], keys)
                atlas.submit("a", key="mine")
                self.assertEqual(server.requests[-1].headers["idempotency-key"], "mine")

        self.both(test)

    def test_another_controller_answers(self) -> None:
        def test(client) -> None:
            alone = Server(lambda request, number: problem("E4001", 503))
            with alone, Server(lambda request, number: answer({"id": "job-1"}, 201)) as leader:
                with client([nobody(), alone.address, leader.address]) as atlas:
                    atlas.submit("a")
                    atlas.submit("a")
                    self.assertEqual((len(alone.requests), len(leader.requests)), (1, 2))

        self.both(test)

    def test_pauses_are_at_least_what_the_server_asks_for(self) -> None:
        def test(client) -> None:
            said = [problem("E3003", 429, retry_after_s=7), answer({"error": "full"}, 429, Retry_After="3"), answer({"id": "j"}, 201)]
            with Server(lambda _, number: said[number]) as server, client(server.address) as atlas:
                pauses = []

                async def sleep(seconds: float) -> None:
                    pauses.append(seconds)

                atlas.core.io.sleep = sleep
                self.assertEqual(atlas.submit("a"), "j")
                self.assertEqual(pauses, [7, 3])

        self.both(test)

    def test_a_pause_beyond_the_deadline_is_not_begun(self) -> None:
        def test(client) -> None:
            with Server(lambda *_: problem("E3003", 429, retry_after_s=100)) as server, client(server.address) as atlas:
                with self.assertRaises(Busy) as caught:
                    atlas.submit("a", deadline=50)
                self.assertEqual((caught.exception.retry_after, caught.exception.retryable), (100, True))
                self.assertEqual(len(server.requests), 1)

        self.both(test)

    def test_repeats_end(self) -> None:
        def test(client) -> None:
            with Server(lambda *_: problem("E4001", 503)) as server, client(server.address) as atlas:
                self.assertRaises(Unavailable, atlas.submit, "a")
                self.assertEqual(len(server.requests), QUICK.rounds)
            with client(nobody(), deadline=0.2) as atlas:
                with self.assertRaises(Unreachable) as caught:
                    atlas.submit("a")
                self.assertEqual((caught.exception.code, caught.exception.status), ("E4002", 0))

        self.both(test)

    def test_what_repeats_do_not_change_is_told_at_once(self) -> None:
        def test(client) -> None:
            place = {"pointer": "/x", "rule": "required", "message": "is missing"}
            said = problem("E1102", 400, hint="look", errors=[place, 7])
            with Server(lambda *_: said) as server, client(server.address) as atlas:
                with self.assertRaises(Invalid) as caught:
                    atlas.submit("a")
                error = caught.exception
                self.assertEqual((error.code, error.status, error.hint, error.retryable), ("E1102", 400, "look", False))
                self.assertEqual(error.places, [place])
                self.assertEqual(str(error), "E1102: told by E1102\n  /x: is missing\n  look")
                self.assertEqual(len(server.requests), 1)
                for code, status, kind in (("E3004", 409, Conflict), ("E1101", 404, NotFound), ("", 418, Invalid)):
                    server.answer = lambda *_, code=code, status=status: problem(code, status)
                    self.assertRaises(kind, atlas.submit, "a")

        self.both(test)

    def test_a_connection_that_was_closed_meanwhile_is_no_failure(self) -> None:
        def test(client) -> None:
            said = lambda *_: [answer({"version": "1"}), CLOSE]
            with Server(said) as server, client(server.address, policy=QUICK.__class__(rounds=1)) as atlas:
                for _ in range(5):
                    self.assertEqual(atlas.api("version"), {"version": "1"})
            with Server(lambda *_: answer({})) as server, client(server.address) as atlas:
                for _ in range(5):
                    atlas.api("version")
                self.assertEqual(len(server.open), 1)

        self.both(test)


class Hostile(Case):
    def test_answers_that_cannot_be_read_are_errors(self) -> None:
        head = b"HTTP/1.1 200 OK\r\n"
        bodies = [b"{", b"[" * 200_000, b"\xff", b'{"id": NaN}', b'{"id": ' + b"9" * 5000 + b"}", b"null", b"[]", b'{"id": 7}', b'"x"']
        said = [
            *(answer(body) for body in bodies),
            b"SSH-2.0-x\r\n\r\n",
            b"HTTP/1.1 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000,
            head + b"Content-Length: -1\r\n\r\n",
            head + b"Content-Length: 9e9\r\n\r\n",
            head + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            head + b" folded\r\n\r\n",
            head + b"Transfer-Encoding: gzip\r\n\r\n",
            head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
            head + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * (2 * LINE_MAX),
            head + b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
            head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"a: b\r\n" * 100,
            b"HTTP/1.1 100 Continue\r\n\r\n" * 50,
        ]

        def test(client) -> None:
            for number, one in enumerate(said):
                with Server(lambda *_, one=one: [one, CLOSE]) as server, client(server.address) as atlas:
                    with self.subTest(number=number), self.assertRaises(BadAnswer) as caught:
                        atlas.submit("a")
                    self.assertEqual((caught.exception.code, caught.exception.retryable), ("E4005", False))

        self.both(test)

    def test_answers_are_bounded(self) -> None:
        def endless(*_):
            yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            while True:
                yield b"1000\r\n" + b" " * 4096 + b"\r\n"

        def test(client) -> None:
            for said in (endless, lambda *_: b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n" + b"x" * 100_000):
                with Server(said) as server, client(server.address, answer_max=50_000) as atlas:
                    self.assertRaises(BadAnswer, atlas.submit, "a")

        self.both(test)

    def test_refusals_may_be_anything(self) -> None:
        bodies = [b"", b"x", b"[]", b"null", b"[" * 100_000, b'{"code": 7, "detail": [], "errors": {}, "retry_after_s": "soon"}']

        def test(client) -> None:
            for body in bodies:
                with Server(lambda *_, body=body: answer(body, 404, Retry_After="-inf")) as server, client(server.address) as atlas:
                    with self.assertRaises(NotFound) as caught:
                        atlas.submit("a")
                    self.assertEqual((caught.exception.message, caught.exception.code), ("the server answered 404", ""))

        self.both(test)

    def test_a_port_that_speaks_tls_says_so(self) -> None:
        def test(client) -> None:
            with Server(lambda *_: [b"\x15\x03\x01\x00\x02\x02\x46", CLOSE]) as server, client(server.address) as atlas:
                with self.assertRaises(Unreachable) as caught:
                    atlas.api("version")
                self.assertEqual((caught.exception.code, len(server.requests)), ("E4013", 1))

        self.both(test)

    def test_redirects_are_not_followed(self) -> None:
        def test(client) -> None:
            said = answer({}, 307, Location="http://127.0.0.1:1/")
            with Server(lambda *_: said) as server, client(server.address, token="hush") as atlas:
                with self.assertRaises(Exception) as caught:
                    atlas.api("version")
                self.assertEqual((caught.exception.status, len(server.requests)), (307, 1))

        self.both(test)

    def test_warnings_are_logged(self) -> None:
        def test(client) -> None:
            said = answer({"id": "job-1"}, 201, Warning='299 atlas "the member \'x\' is ignored"')
            with Server(lambda *_: said) as server, client(server.address) as atlas:
                with self.assertLogs("atlas_client", "WARNING") as logs:
                    atlas.submit("a")
                self.assertEqual(logs.records[0].getMessage(), "the member 'x' is ignored")

        self.both(test)

    def test_unknown_members_are_kept(self) -> None:
        def test(client) -> None:
            said = {"id": "job-1", "status": "completed", "of_tomorrow": {"a": [1, None]}}
            with Server(lambda *_: answer(said)) as server, client(server.address) as atlas:
                self.assertEqual(atlas.job("job-1"), said)

        self.both(test)


class Arguments(Case):
    def test_names_stay_one_part_of_a_path(self) -> None:
        names = {"id": "a/../b?c#d %ü"}
        self.assertEqual(path_of("/api/jobs/{id}/wait", names), "/api/jobs/a%2F..%2Fb%3Fc%23d%20%25%C3%BC/wait")
        for name in ("", ".", ".."):
            self.assertRaises(ValueError, path_of, "/api/jobs/{id}", {"id": name})

    def test_addresses(self) -> None:
        servers = lambda named: [(one.tls, one.where, one.prefix) for one in Both(False, named).core.settings.servers]
        self.assertEqual(servers("a:1, https://b/x/ ,"), [(False, "a:1", ""), (True, "b:443", "/x")])
        self.assertEqual(servers(["http://[::1]:7400"]), [(False, "[::1]:7400", "")])
        for wrong in (",", "ftp://a", "http://", "http://a:x", "http://u:p@a", "http://a?b"):
            self.assertRaises(BadSettings, Client, wrong)

    def test_a_namespace_is_sent_where_the_interface_takes_one(self) -> None:
        def test(client) -> None:
            with Server(lambda *_: answer([])) as server, client(server.address, namespace="team-a") as atlas:
                atlas.api("list_jobs", label=["a=b", "c=d"], limit=3)
                atlas.api("list_nodes")
                atlas.api("list_jobs", namespace="other")
                targets = [request.target for request in server.requests]
                self.assertEqual(
                    targets,
                    ["/api/jobs?label=a%3Db&label=c%3Dd&limit=3&namespace=team-a", "/api/nodes", "/api/jobs?namespace=other"],
                )

        self.both(test)

    def test_both_clients_have_the_same_methods(self) -> None:
        names = lambda kind: {name for name in dir(kind) if not name.startswith("_")}
        self.assertEqual(names(Client), names(AsyncClient))


class Cancelled(Case):
    def test_a_request_that_is_given_up_leaves_no_connection(self) -> None:
        async def work(server: Server) -> None:
            async with AsyncClient(server.address) as atlas:
                await atlas.api.version()
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(atlas.submit("a"), 0.1)
                stream = atlas.stream("job-1")
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(stream.__anext__(), 0.1)
                await stream.close()
                self.assertFalse(any(atlas._core._idle.values()))

        with Server(lambda request, _: answer({}) if request.path == "/api/version" else []) as server:
            asyncio.run(work(server))
            # The server hears of each end.
            until = time.monotonic() + 60
            while any(connection.fileno() >= 0 for connection in server.open):
                self.assertLess(time.monotonic(), until)
                time.sleep(0.01)
