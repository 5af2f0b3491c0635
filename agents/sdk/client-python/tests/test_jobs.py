"""Jobs: their retries, streams and questions; conversations."""

from __future__ import annotations

import json

from atlas_client import BadAnswer, Event, Gone, JobCancelled, JobFailed, WaitTimeout
from atlas_client._errors import AtlasError
from atlas_client._sse import Parser

from .fake import CLOSE, END, STREAM, Server, answer, change, chunk, job, problem
from .support import Case


class Waits(Case):
    def test_a_wait_follows_the_retries_to_their_end(self) -> None:
        def said(request, number):
            first = [job("running"), job("failed", retried_by="job-2", error="once")]
            return first[number] if number < 2 else job("completed", id="job-2", output_data={"x": [1]})

        def test(client) -> None:
            with Server(said) as server, client(server.address) as atlas:
                self.assertEqual(atlas.wait("job-1"), {"x": [1]})
                paths = [request.path for request in server.requests]
                self.assertEqual(paths, ["/api/jobs/job-1/wait"] * 2 + ["/api/jobs/job-2/wait"])

        self.both(test)

    def test_a_failed_job_is_an_error_with_its_code(self) -> None:
        def test(client) -> None:
            said = job("failed", error="E3107: no room", error_code="E3107", failure_kind="agent")
            with Server(lambda *_: said) as server, client(server.address) as atlas:
                with self.assertRaises(JobFailed) as caught:
                    atlas.wait("job-1")
                error = caught.exception
                self.assertEqual((error.code, error.job_id, error.failure_kind), ("E3107", "job-1", "agent"))
                self.assertEqual(str(error), "E3107: job-1 failed: no room")
                self.assertEqual(atlas.wait_job("job-1")["error"], "E3107: no room")
                server.answer = lambda *_: job("cancelled")
                self.assertRaises(JobCancelled, atlas.wait, "job-1")

        self.both(test)

    def test_a_wait_has_a_deadline_also_if_the_server_does_not_wait(self) -> None:
        def test(client) -> None:
            with Server(lambda *_: job("running")) as server, client(server.address) as atlas:
                with self.assertRaises(WaitTimeout) as caught:
                    atlas.wait("job-1", deadline=0.3)
                self.assertEqual(caught.exception.job_id, "job-1")
                self.assertLess(len(server.requests), 10)

        self.both(test)

    def test_retries_that_go_round_end(self) -> None:
        def test(client) -> None:
            with Server(lambda *_: job("failed", retried_by="job-1")) as server, client(server.address) as atlas:
                self.assertRaises(JobFailed, atlas.wait, "job-1")

        self.both(test)

    def test_questions_are_answered(self) -> None:
        question = {"id": "question-1", "status": "open", "prompt": "Which?", "options": ["a", "b"]}

        def said(request, number):
            if request.path.startswith("/api/questions"):
                return problem("E3041", 409) if request.method == "POST" else answer(question)
            if request.method == "POST":
                return answer({"id": "job-1"}, 201)
            return job("completed", output_data=1) if number > 3 else job("running", needs_answer=["question-1", 7])

        def test(client) -> None:
            with Server(said) as server, client(server.address) as atlas:
                asked = []
                answering = lambda shown: asked.append(shown) or "a"
                self.assertEqual(atlas.run("a", on_question=answering), 1)
                self.assertEqual(asked, [question])
                self.assertEqual(server.requests[0].json["questions"], "wait")
                self.assertEqual(server.requests[3].json, {"answer": "a"})

        self.both(test)

    def test_a_question_that_is_left_to_others_is_asked_once(self) -> None:
        def said(request, number):
            if request.path.startswith("/api/questions"):
                return answer({"status": "open"})
            return job("completed") if number > 4 else job("running", needs_answer=["question-1"])

        def test(client) -> None:
            with Server(said) as server, client(server.address) as atlas:
                asked = []
                atlas.wait("job-1", on_question=asked.append)
                self.assertEqual(len(asked), 1)

        self.both(test)


def seen(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.id, event.data["new_status"]) for event in events]


WHOLE = [("1.1", "pending"), ("1", "running"), ("2", "completed")]


class Streams(Case):
    def test_a_stream_goes_on_at_another_controller(self) -> None:
        def dies(*_):
            # Within the third event.
            yield STREAM + change("1.1", "pending") + change("1", "running") + chunk('event: job\nid: 2\ndata: {"new')
            yield CLOSE

        def goes_on(request, number):
            last = request.headers.get("last-event-id")
            assert last == "1", last
            return [STREAM, change("2", "completed"), END]

        def test(client) -> None:
            with Server(dies) as first, Server(goes_on) as second:
                with client([first.address, second.address]) as atlas:
                    events = atlas.stream("job-1")
                    self.assertEqual(seen(events), WHOLE)
                    self.assertEqual(events[0].data["of_tomorrow"], 1)
                    self.assertEqual((len(first.requests), len(second.requests)), (1, 1))

        self.both(test)

    def test_a_stream_that_ends_before_its_job_goes_on(self) -> None:
        def said(request, number):
            if request.path == "/api/jobs/job-1":
                return job("running")
            # A controller that stops ends its streams as a job that has ended would.
            parts = [change("1.1", "pending") + change("1", "running"), b"", b"", change("2", "completed")]
            return [STREAM, *filter(None, [parts[len([one for one in server.requests if one.path.endswith("events")]) - 1]]), END]

        def test(client) -> None:
            nonlocal server
            with Server(said) as server, client(server.address) as atlas:
                self.assertEqual(seen(atlas.stream("job-1")), WHOLE)

        server: Server
        self.both(test)

    def test_after_the_last_event_of_a_job_nothing_comes(self) -> None:
        def said(request, number):
            return job("completed") if request.path == "/api/jobs/job-1" else [STREAM, END]

        def test(client) -> None:
            with Server(said) as server, client(server.address) as atlas:
                self.assertEqual(atlas.stream("job-1", after="2"), [])
                self.assertEqual(server.requests[0].headers["last-event-id"], "2")

        self.both(test)

    def test_what_would_be_repeated_is_not_resumed(self) -> None:
        def test(client) -> None:
            said = lambda *_: [STREAM, chunk('event: delta\ndata: {"text": "a"}\n\n'), CLOSE]
            with Server(said) as server, client(server.address) as atlas:
                self.assertRaises(AtlasError, atlas.stream, "job-1", deltas=True)
                self.assertEqual(len(server.requests), 1)

        self.both(test)

    def test_events_that_are_gone_are_an_error(self) -> None:
        def test(client) -> None:
            with Server(lambda *_: problem("E3007", 410)) as server, client(server.address) as atlas:
                self.assertRaises(Gone, atlas.stream, "job-1", after="1")

        self.both(test)

    def test_what_is_no_stream_is_an_error(self) -> None:
        def test(client) -> None:
            for said in (answer({}), STREAM + chunk("data: {\n\n"), STREAM + chunk(b"data: \xff\n\n")):
                with Server(lambda *_, said=said: said) as server, client(server.address) as atlas:
                    self.assertRaises(BadAnswer, atlas.stream, "job-1")

        self.both(test)

    def test_events_come_in_any_pieces(self) -> None:
        text = ": alive\r\n\r\nid: 1\r\nevent: a\r\ndata: x\rdata:y\n\ndata\n\nretry: 9\nid: 2\ndata:  z ü\u2028w\n\n".encode()
        expected = [("1", "a", "x\ny"), ("", "message", ""), ("2", "message", " z ü\u2028w")]
        for size in (1, 2, 3, 7, len(text)):
            parser = Parser()
            pieces = [text[at : at + size] for at in range(0, len(text), size)]
            self.assertEqual([event for piece in pieces for event in parser.push(piece)], expected, size)

    def test_an_event_is_bounded(self) -> None:
        parser = Parser(100)
        for _ in range(50):
            self.assertEqual(len(parser.push(b"data: " + b"x" * 80 + b"\n\n")), 1)
        with self.assertRaises(BadAnswer):
            for _ in range(100):
                parser.push(b"data: x")
        parser = Parser(100)
        with self.assertRaises(BadAnswer):
            for _ in range(100):
                parser.push(b"data: x\n")


class Conversations(Case):
    def test_a_message_waits_for_its_turn(self) -> None:
        def said(request, number):
            if request.method == "POST":
                return problem("E1120", 429, retry_after_s=0) if number == 0 else answer({"id": "job-1"}, 201)
            return job("completed", output_data={"answer": "Belém", "message": "the tower"})

        def test(client) -> None:
            with Server(said) as server, client(server.address) as atlas:
                reply = atlas.send("clerk", "what first?", conversation="trip", input={"variables": {"a": 1}})
                self.assertEqual((reply.text, reply.job_id, reply.output["answer"]), ("the tower", "job-1", "Belém"))
                body = json.loads(server.requests[0].body)
                self.assertEqual(body["input"], {"variables": {"a": 1}, "message": "what first?"})
                self.assertEqual(body["conversation"], "trip")

        self.both(test)
