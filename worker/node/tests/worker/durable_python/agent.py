"""An agent with one method for each test."""

import asyncio
import os
import random
import socket
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from random import choice

from atlas.durable import DID_NOT_HAPPEN, Retry, StepFailed, step
from atlas.runtime.base import AgentBase


@step
def double(n):
    return 2 * n


@step(effects="once", retry=Retry(3, delay=2.0, on=(ValueError,)))
async def flaky(n):
    raise ValueError(f"no {n}") if n else KeyError("none")


def slow(n):
    time.sleep(0.01)
    return n


class Agent(AgentBase):
    async def execute(self, input_data):
        return await getattr(self, input_data["use"])(self.context)

    @step(name="greet")
    def greeting(self, name, *, loud=False):
        return (f"hello {name}", {1: loud}, threading.current_thread().name.startswith("step"))

    async def sequence(self, context):
        total = 0
        for n in range(4):
            total += await context.step("add", slow, n)
        return {"total": total, "doubled": await double(total)}

    async def equal(self, context):
        return {"values": [await context.step("same", lambda: 7) for _ in range(3)]}

    async def gathered(self, context):
        first = await asyncio.gather(*(context.step("one", slow, n) for n in range(3)))
        await context.sleep(timedelta(minutes=1))
        second = await asyncio.gather(context.step("two", slow, first), context.sleep(5), double(sum(first)))
        return {"values": [first, second]}

    async def raced(self, context):
        tasks = [asyncio.create_task(context.sleep(seconds), name=str(seconds)) for seconds in (10, 20)]
        done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        (first,) = done
        return {"first": first.get_name(), "after": await context.step("after", slow, first.get_name())}

    async def method(self, _context):
        return {"value": await self.greeting("you", loud=True)}

    async def retried(self, context):
        texts = []
        for n in (1, 0):
            try:
                await flaky(n)
            except StepFailed as error:
                texts.append([error.name, error.type, error.text, type(error.__cause__).__name__])
        return {"texts": texts}

    async def not_json(self, context):
        try:
            await context.step("set", lambda: {1, 2})
        except StepFailed as error:
            return {"error": str(error)}

    async def too_large(self, context):
        def raises():
            raise ValueError("x" * 100_000)

        texts = []
        for function in (lambda: "x" * 1_001, lambda: "x" * 998, lambda: "ü" * 200, raises):
            try:
                texts.append(len(await context.step("large", function)))
            except StepFailed as error:
                texts.append([error.type, error.text[:61], len(error.text)])
        return {"texts": texts}

    async def nested(self, context):
        def outer():
            return double(1)

        async def outer_too():
            await context.sleep(1)

        texts = []
        for function in (outer, outer_too):
            try:
                await context.step("outer", function)
            except StepFailed as error:
                texts.append(error.text)
        return {"texts": texts}

    async def waits(self, context):
        answer = await context.ask("Ship?", ["yes", "no"], timeout=60, default="no")
        message = await context.receive("go", timeout=timedelta(hours=1))
        nothing = await context.receive("stop", timeout=1)
        return {"answer": answer, "body": message.body, "sender": message.sender, "nothing": nothing, "now": context.now().isoformat()}

    async def others(self, context):
        child = await context.spawn("echo", {"n": 1})
        children = await context.spawn_all([("echo", {"n": 2}), {"agent": "echo", "input": {"n": 3}, "timeout": 5}])
        answer = await context.model("Why?", max_tokens=5)
        same = await context.llm.complete("Why?", max_tokens=5)
        tool = await context.call_tool("clock", {"zone": "utc"})
        return {
            "children": [child.data, *(child.data for child in children)],
            "texts": [answer.text, same.text],
            "tool": tool,
            "version": await context.version("new"),
        }

    async def values(self, context):
        inside = await context.step("inside", lambda: [context.idempotency_key, context.uuid(), context.uuid()])
        return {"values": [context.random().random(), context.uuid(), context.uuid(), inside, context.idempotency_key]}

    async def parks(self, context):
        seen = []

        async def other():
            try:
                await asyncio.Event().wait()
            finally:
                seen.append("cancelled")

        task = asyncio.create_task(other())
        try:
            await context.step("before", slow, 1)
            await context.sleep(3600)
            task.cancel()
        except Exception:
            seen.append("an exception")
        finally:
            try:
                await context.step("cleanup", slow, 2)
            except BaseException as error:
                seen.append(type(error).__name__)
                if type(error).__name__ == "Parked":
                    context.progress(f"unwound {seen}")
                raise
        return {"seen": seen}

    async def gave_up(self, context):
        sleeping = asyncio.create_task(context.sleep(1000))
        await asyncio.sleep(0)
        sleeping.cancel()
        began, goes_on = threading.Event(), threading.Event()

        def late():
            began.set()
            goes_on.wait(60)
            return "late"

        task = asyncio.create_task(context.step("late", late))
        await asyncio.to_thread(began.wait)
        task.cancel()
        await asyncio.wait([task])
        goes_on.set()
        return {"after": await context.step("after", slow, 1)}

    async def reconciled(self, context):
        def look(n):
            return "found" if n == 1 else DID_NOT_HAPPEN

        return {"values": [await context.step("pay", slow, n, effects="once", reconcile=look) for n in (1, 2)]}

    async def undecided(self, context):
        def look(n):
            raise ConnectionError("no answer")

        for _ in range(2):
            try:
                await context.step("pay", slow, 1, effects="once", reconcile=look)
            except BaseException as error:
                context.progress(type(error).__name__)

    async def left_looking(self, context):
        def look(n):
            began.set()
            goes_on.wait(60)
            if n == 1:
                raise ConnectionError("no answer")
            return DID_NOT_HAPPEN if n == 2 else "found"

        for n in (1, 2, 3):
            began, goes_on = threading.Event(), threading.Event()
            task = asyncio.create_task(context.step("pay", slow, n, effects="once", reconcile=look))
            await asyncio.to_thread(began.wait)
            task.cancel()
            await asyncio.wait([task])
            goes_on.set()
            await context.sleep(n)
        return {}

    async def left_early(self, context):
        async def waits():
            await asyncio.Event().wait()

        for _ in range(2):
            try:
                await asyncio.wait_for(context.step("waits", waits), 1)
            except asyncio.TimeoutError:
                pass
        return {}

    async def at_work(self, context):
        began = threading.Event()

        def work():
            began.set()
            time.sleep(1.5)

        task = asyncio.create_task(context.step("work", work))
        await asyncio.to_thread(began.wait)
        await context.sleep(3600)
        await task

    async def stubborn(self, context):
        async def work():
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                await asyncio.sleep(1.5)

        task = asyncio.create_task(work())
        await context.sleep(3600)
        await task

    async def undecided_at_work(self, context):
        def look():
            raise ConnectionError("no answer")

        task = asyncio.create_task(context.step("work", time.sleep, 3600))
        await context.step("pay", slow, effects="once", reconcile=look)
        await task

    async def from_threads(self, context):
        def work(n):
            return context.step("in thread", slow, n)

        with ThreadPoolExecutor(3) as pool:
            loop = asyncio.get_running_loop()
            values = await asyncio.gather(*(loop.run_in_executor(pool, work, n) for n in range(3)))
        own = await asyncio.to_thread(asyncio.run, self._own_loop(context))
        return {"values": values, "own": own}

    async def _own_loop(self, context):
        return await asyncio.gather(context.step("own", slow, 1), context.step("own", slow, 2))

    async def forked(self, context):
        reads, writes = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                await context.step("fork", slow, 1)
            except BaseException as error:
                os.write(writes, type(error).__name__.encode())
            os._exit(0)
        os.waitpid(child, 0)
        return {"error": os.read(reads, 100).decode()}

    async def many(self, context):
        values = await asyncio.gather(*(context.step("one", lambda n: n, n) for n in range(1100)))
        return {"sum": sum(values)}

    async def changed(self, context):
        value = await context.step("first", slow, 1)
        return {"value": await context.step("second", slow, os.getpid()), "first": value}

    async def swallowed(self, context):
        values = await asyncio.gather(context.sleep(1), context.sleep(2), return_exceptions=True)
        return {"values": [repr(value) for value in values]}

    async def chance(self, context):
        for _ in range(2):
            time.time()
            datetime.now()
        random.random(), choice([1, 2])
        uuid.uuid4()
        with socket.socket() as client:
            client.connect_ex(("127.0.0.1", 9))
        context.now(), context.random().random(), context.uuid()
        await context.step("inside", lambda: [time.time(), str(uuid.uuid4())] and random.random() and None)
        return await asyncio.to_thread(dict, at=None)
