"""Twenty steps in Python. Each leaves lines in a file outside of Atlas, and lets itself be killed at its boundaries."""

import asyncio
import os
import signal
import time

from atlas.durable import DID_NOT_HAPPEN
from atlas.runtime.base import AgentBase

EFFECTS = ["pure", "once", "idempotent"]


class Walk:
    """One run of the program, from its beginning to its end or to its death."""

    def __init__(self, context, given):
        self.context = context
        self.run = os.urandom(8).hex()
        self.place = os.path.join(given["dir"], given["family"])
        self.given = given
        self.total = 0

    def mark(self, word, n, key="-"):
        line = f"{self.run} {self.context.job_id} {word} {n} {key}\n"
        file = os.open(self.place + ".trace", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(file, line.encode())
        os.close(file)

    def gate(self, n, boundary):
        """Meets the fault that is planned for this boundary."""
        path = f"{self.place}.{n}.{boundary}"
        try:
            with open(path) as file:
                how = file.read()
            os.rename(path, path + ".met")
        except FileNotFoundError:
            return
        if how == "agent":
            os.kill(os.getpid(), signal.SIGKILL)
        while how == "wait" and os.path.exists(path + ".met"):
            time.sleep(0.01)

    def work(self, n, total):
        self.mark("enter", n)
        self.gate(n, "enter")
        self.mark("effect", n, self.context.idempotency_key)
        self.gate(n, "leave")
        return n * 7

    def look(self, n, total):
        self.mark("looked", n)
        with open(self.place + ".trace") as file:
            return n * 7 if f" effect {n} " in file.read() else DID_NOT_HAPPEN

    async def step(self, n, total):
        self.mark("before", n)
        self.gate(n, "before")
        effects = EFFECTS[n % 3]
        reconcile = self.look if effects == "once" and n % 2 == 0 else None
        got = await self.context.step(f"s{n}", self.work, n, total, effects=effects, reconcile=reconcile)
        self.mark("after", n)
        self.gate(n, "after")
        return n * 7 if got is None else got

    async def steps(self, first, last):
        for n in range(first, last + 1):
            self.total += await self.step(n, self.total)

    async def wait(self, name, waits):
        self.mark("waits", name)
        got = await waits
        self.mark("went", name)
        return got

    async def walk(self):
        self.mark("starts", 0)
        await self.steps(1, 3)
        await self.wait("sleep", self.context.sleep(0.1))
        await self.steps(4, 6)
        message = await self.wait("receive", self.context.receive("go"))
        await self.steps(7, 9)
        family = {"dir": self.given["dir"], "family": self.given["family"]}
        child = await self.wait("spawn", self.context.spawn("durable-child", family))
        await self.steps(10, 12)
        said = await self.wait("ask", self.context.ask("Go on?", ["yes", "no"]))
        await self.steps(13, 15)
        await self.wait("pause", self.context.sleep(float(self.given["pause"])))
        await self.steps(16, 16)
        self.total += sum(await asyncio.gather(*(self.step(n, self.total) for n in (17, 18, 19))))
        await self.steps(20, 20)
        self.mark("ends", 0)
        return {"total": self.total, "message": message.body, "child": child.data, "said": said}


class Walker(AgentBase):
    async def execute(self, input_data):
        return await Walk(self.context, input_data).walk()
