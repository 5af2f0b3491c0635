"""Durable agents in Python, against a worker that is made for it: `python -m unittest cases` in this folder."""

import time
import unittest

from fake import FOLDER, Host, Worker, attempts

BLOCKING = FOLDER / "blocking"


def outputs(runs):
    return [ended.get("output", ended) for ended, _ in runs]


class Replays(unittest.TestCase):
    """A host that is killed after each recorded end: the next one goes on, and the result is the same."""

    def test_steps_one_after_the_other_are_sent_with_the_job(self):
        first, runs = self.check("sequence")
        self.assertEqual(first, {"total": 6, "doubled": 12})
        for _, job in runs[1:]:
            self.assertEqual(len(job.effects), 5)  # no function twice
            self.assertLessEqual(len(job.asked), 5)  # and no question about what was sent

    def test_the_same_without_a_record_that_is_sent(self):
        self.check("sequence", sends_past=False)

    def test_equal_calls_are_numbered(self):
        _, runs = self.check("equal")
        ids = [entry[0] for entry in runs[0][1].record]
        self.assertEqual([identity.rpartition(":")[2] for identity in ids], ["1", "2", "3"])
        self.assertEqual(len({identity.rpartition(":")[0] for identity in ids}), 1)

    def test_calls_at_the_same_time(self):
        first, runs = self.check("gathered")
        self.assertEqual(first, {"values": [[0, 1, 2], [[0, 1, 2], None, 6]]})
        for _, job in runs:
            self.assertEqual(len(set(job.effects)), 5)

    def test_retries_are_calls_of_their_own(self):
        first, runs = self.check("retried")
        self.assertEqual(len(runs[0][1].record), 6)  # three tries, two sleeps, and one error that is not tried again
        texts = [["flaky", "ValueError", "no 1", "ValueError"], ["flaky", "KeyError", "'none'", "KeyError"]]
        self.assertEqual(first, {"texts": texts})

    def check(self, use, folder=FOLDER, answers=None, **options):
        runs = attempts({"use": use}, folder, answers, **options)
        first = outputs(runs)[0]
        for kept, (ended, job) in enumerate(runs):
            self.assertEqual(ended["type"], "result", (kept, ended))
            if use != "retried":  # causes are there only where the function ran
                self.assertEqual(ended["output"], first, kept)
            self.assertEqual(sorted(entry[0] for entry in job.record), sorted(entry[0] for entry in runs[0][1].record), kept)
        return first, runs

    def test_methods_count_without_their_object(self):
        first, _ = self.check("method")
        self.assertEqual(first, {"value": ["hello you", {"1": True}, True]})

    def test_waits(self):
        message = {"id": "m1", "from": "ann", "at_us": 5, "body": {"n": 1}}
        first, runs = self.check("waits", answers={"ask": "yes", "receive:go": message, "receive:stop": None})
        self.assertEqual(first["answer"], "yes")
        self.assertEqual((first["body"], first["sender"], first["nothing"]), ({"n": 1}, "ann", None))
        self.assertEqual(first["now"], "2023-11-14T22:13:23+00:00")
        question, go, _ = runs[0][1].asked
        expected = {"kind": "choose", "prompt": "Ship?", "options": ["yes", "no"], "timeout_us": 60_000_000, "default": "no"}
        self.assertEqual(question["question"], expected)
        self.assertEqual(go["for_us"], 3_600_000_000)
        self.assertRegex(go["at"], r"^agent\.py:\d+$")

    def test_other_jobs_models_and_tools(self):
        model = {"text": "so", "input_tokens": 1, "output_tokens": 1, "model": "mock"}
        answers = {"spawn": lambda call: {"data": call["input"]}, "model": model, "tool": {"data": {"time": 1}}, "version": True}
        first, _ = self.check("others", answers=answers)
        expected = {"children": [{"n": 1}, {"n": 2}, {"n": 3}], "texts": ["so", "so"], "tool": {"time": 1}, "version": True}
        self.assertEqual(first, expected)

    def test_values_that_look_random(self):
        first, _ = self.check("values")
        number, one, two, inside, key = first["values"]
        self.assertEqual(len({number, one, two, *inside, key}), 7)
        self.assertTrue(inside[0].startswith("key-step:inside:"))

    def test_reconciled_steps_run_once(self):
        self.check("reconciled")

    def test_threads_and_other_loops(self):
        first, runs = self.check("from_threads")
        self.assertEqual(first, {"values": [0, 1, 2], "own": [1, 2]})

    def test_code_without_await(self):
        first, runs = self.check("order", BLOCKING, {"ask": True})
        self.assertEqual(first["charged"], {"charged": 5, "thread": "execute"})
        self.assertEqual((first["answer"], first["failed"], first["more"]), (True, ["ValueError", "refused"], 2))
        self.assertTrue(all(call["alone"] for _, job in runs for call in job.asked))

    def test_code_without_await_that_does_several_things(self):
        first, _ = self.check("side_by_side", BLOCKING, {"spawn": lambda call: {"data": call["input"]}})
        self.assertEqual(first, {"values": [0, 1, 2, 3], "children": [{"n": 0}, {"n": 1}, {"n": 2}]})


class Rules(unittest.TestCase):
    """One job, call by call."""

    def begin(self, use, folder=FOLDER, beginning=None, **contract):
        context = {"replay": contract["replay"]} if "replay" in contract else {}
        host = Host(folder, **contract)
        self.addCleanup(host.close)
        return Worker(host, {"use": use}, beginning=beginning, **context)

    def test_the_first_of_several_is_the_first_again(self):
        for first, second in ((0, 1), (1, 0)):
            job = self.begin("raced")
            calls = [job.call(), job.call()]
            job.answer(calls[first])
            job.answer(calls[second])
            # Both ends are on their way, and the program sees one of them only.
            after = job.call()
            self.assertEqual(job.frame(), {"type": "forget", "number": 101, "call": calls[second]["call"]})
            job.make(after)
            job.answer(after, **job.made(after))
            expected = job.end()["output"]
            self.assertEqual(expected["first"], ("10", "20")[first])
            job.start_on(Host())
            self.addCleanup(job.host.close)
            self.assertEqual(job.finish()["output"], expected)

    def test_a_parked_run_unwinds(self):
        job = self.begin("parks")
        before = job.call()
        job.make(before)
        job.answer(before, **job.made(before))
        self.assertEqual(job.call()["kind"], "sleep")
        job.host.send({"type": "leave", "number": 101})
        self.assertEqual(job.end(), {"type": "left", "number": 101})
        self.assertEqual(job.host.said, ["unwound ['Parked']"])
        # The process goes on to the next attempt.
        job.start_on(job.host)
        sleep = job.call()
        self.assertEqual((sleep["kind"], sleep["claimed"]), ("sleep", 1))
        job.answer(sleep, value=None)
        cleanup = job.call()
        job.make(cleanup)
        job.answer(cleanup, **job.made(cleanup))
        self.assertEqual(job.end()["output"], {"seen": ["cancelled"]})

    def test_a_parked_run_unwinds_without_await(self):
        job = self.begin("parks", BLOCKING)
        job.call(), job.call()
        job.host.send({"type": "leave", "number": 101})
        self.assertEqual(job.end(), {"type": "left", "number": 101})
        self.assertEqual(job.host.said, ["unwound"])

    def test_what_a_parked_run_returns_does_not_count(self):
        job = self.begin("swallowed")
        job.call(), job.call()
        job.host.send({"type": "leave", "number": 101})
        self.assertEqual(job.end(), {"type": "left", "number": 101})

    def test_a_call_that_is_given_up(self):
        job = self.begin("gave_up")
        sleep = job.call()
        self.assertEqual(job.frame(), {"type": "forget", "number": 101, "call": sleep["call"]})
        step = job.call()
        job.make(step)
        self.assertEqual(job.frame(), {"type": "forget", "number": 101, "call": step["call"]})
        # The function goes on in its thread, and its end is recorded as well.
        frames = {frame["type"]: frame for frame in (job.frame(), job.frame())}
        self.assertEqual((frames["made"]["call"], frames["made"]["value"]), (step["call"], "late"))
        after = frames["call"]
        job.note(after)
        job.make(after)
        job.answer(after, **job.made(after))
        self.assertEqual(job.end()["output"], {"after": 1})

    def test_calls_beyond_what_a_worker_takes_wait(self):
        job = self.begin("many")
        calls = [job.call() for _ in range(1000)]
        for number, call in enumerate(calls):
            job.answer(call, value=number)
        self.assertEqual(job.finish()["output"], {"sum": sum(range(1100))})

    def test_a_step_that_returns_no_json(self):
        job = self.begin("not_json")
        call = job.call()
        job.make(call)
        end = job.made(call)
        self.assertEqual(end["error"]["type"], "TypeError")
        self.assertIn("step 'set' returned", end["error"]["text"])
        job.answer(call, **end)
        self.assertIn("step 'set' failed: TypeError", job.end()["output"]["error"])

    def test_what_is_too_large_is_an_error_of_its_step(self):
        job = self.begin("too_large", beginning={"value_bytes_max": 1_000})
        value, text, escaped, raised = job.finish()["output"]["texts"]
        self.assertEqual(value[:2], ["ValueError", "the result of the step 'large' has 1003 bytes, more than 1000"])
        self.assertEqual((text, escaped[1][:46]), (998, "the result of the step 'large' has 1202 bytes,"))
        self.assertEqual((raised[0], raised[2]), ("ValueError", 10_000))

    def test_steps_do_not_nest(self):
        job = self.begin("nested")
        texts = job.finish()["output"]["texts"]
        self.assertEqual(texts, [f"{inner} is called inside of step 'outer'; call it from execute, outside of that step" for inner in ("step 'double'", "sleep")])

    def test_steps_in_doubt(self):
        job = self.begin("reconciled")
        first = job.call()
        self.assertEqual((first["effects"], first["reconcile"]), ("once", True))
        job.make(first, again=True, doubt=True)
        self.assertEqual(job.made(first), {"value": "found"})
        job.answer(first, value="found")
        second = job.call()
        job.make(second, again=True, doubt=True)
        self.assertEqual(job.made(second), {"reconciled": "did_not"})
        job.make(second)
        job.answer(second, **job.made(second))
        self.assertEqual(job.end()["output"], {"values": ["found", 2]})

    def test_a_step_that_nobody_can_decide_ends_the_run(self):
        for folder in (FOLDER, BLOCKING):
            job = self.begin("undecided", folder)
            call = job.call()
            job.make(call, again=True, doubt=True)
            self.assertEqual(job.frame(), {"type": "forget", "number": 101, "call": call["call"], "over": True})
            # The program catches what it can, and calls the step again, which the worker does not hear of.
            text = "whether step 'pay' happened could not be found out: ConnectionError: no answer"
            self.assertEqual(job.end(), {"type": "error", "number": 101, "error": text})
            self.assertEqual(job.host.said, ["Stopped", "Stopped"])

    def test_a_run_that_nobody_can_decide_takes_its_process_with_it(self):
        job = self.begin("undecided_at_work")
        calls = {call["name"]: call for call in (job.call(), job.call())}
        job.make(calls["work"])
        job.make(calls["pay"], again=True, doubt=True)
        self.assertEqual(job.frame()["over"], True)
        self.assertEqual(job.end()["type"], "error")
        self.assertEqual(job.host.wait(), 1)

    def test_who_looks_for_nobody_tells_only_what_is_clear(self):
        job = self.begin("left_looking")
        for expected in ({"type": "forget", "over": True}, {"type": "made", "reconciled": "did_not"}, {"type": "made", "value": "found"}):
            step = job.call()
            job.make(step, again=True, doubt=True)
            self.assertEqual(job.frame(), {"type": "forget", "number": 101, "call": step["call"]})
            sleep, end = sorted((job.frame(), job.frame()), key=lambda frame: frame["type"])
            self.assertEqual(end, {"number": 101, "call": step["call"], **expected})
            if "reconciled" in end:
                job.make(step)
                self.assertEqual(job.frame(), {"type": "forget", "number": 101, "call": step["call"], "over": True})
            job.note(sleep)
            job.answer(sleep, value=None)
        self.assertEqual(job.end()["type"], "result")

    def test_a_step_that_was_cancelled_is_over(self):
        job = self.begin("left_early")
        for is_made in (False, True):
            step = job.call()
            if is_made:
                job.make(step)
            self.assertEqual(job.frame(), {"type": "forget", "number": 101, "call": step["call"], "over": True})
        self.assertEqual(job.end()["type"], "result")

    def test_a_run_that_goes_on_has_not_left(self):
        for use in ("at_work", "stubborn"):
            for stops in (False, True):
                job = self.begin(use)
                call = job.call()
                if call["kind"] == "step":
                    job.make(call)
                    call = job.call()
                begun = time.monotonic()
                job.host.send({"type": "called", "call": call["call"], "stop": "E3013"} if stops else {"type": "leave", "number": 101})
                expected = {"type": "error", "error": "E3013"} if stops else {"type": "left"}
                self.assertEqual(job.end(), {"number": 101, **expected})
                self.assertGreater(time.monotonic() - begun, 1.2, (use, stops))

    def test_the_result_says_how_much_of_the_record_was_asked_for(self):
        job = self.begin("sequence")
        self.assertEqual(job.finish()["claimed"], 0)
        job.start_on(job.host)
        self.assertEqual(job.finish()["claimed"], 5)

    def test_a_forked_process_cannot_call(self):
        self.assertEqual(self.begin("forked").end()["output"], {"error": "OtherProcessError"})

    def test_a_program_that_differs_is_stopped(self):
        job = self.begin("changed")
        job.finish()
        other = Host()
        self.addCleanup(other.close)
        job.start_on(other)
        end = job.finish()
        self.assertEqual(end["type"], "error")
        self.assertRegex(end["error"], r"^E3013: agent\.py:\d+ asks for second\(\d+\), the record has step:second:")

    def test_strict_agents_are_warned_of_chance_once_a_line(self):
        job = self.begin("chance", replay="strict")
        job.finish()
        warned = [line.partition(": ")[2].partition(" outside of a step is different in each attempt; ") for line in job.host.said]
        expected = [
            ("time.time()", "use self.context.now()"),
            ("datetime.now()", "use self.context.now()"),
            ("random.random()", "use self.context.random()"),
            ("uuid.uuid4()", "use self.context.uuid()"),
            ("the network", "do it in a step"),
        ]
        self.assertEqual([(what, instead) for what, _, instead in warned], expected)
        self.assertTrue(all(line.startswith("agent.py:") for line in job.host.said))
        job = self.begin("chance")
        job.finish()
        self.assertEqual(job.host.said, [])

    def test_agents_that_are_not_durable_are_told_what_to_add(self):
        for use in ("values", "method"):
            job = self.begin(use, durable=False)
            self.assertIn("add `durable: true` to agent.yaml", job.end()["error"])


if __name__ == "__main__":
    unittest.main()
