"""Measured by `atlas-bench durable`."""

import os
import signal
import time

from atlas.runtime.base import AgentBase


async def nothing():
    return None


def nothing_in_a_thread():
    return None


async def first_new(marker):
    """The time. Kills this process the first time."""
    at = time.time()
    if not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return at


class Measured(AgentBase):
    """`steps` steps that do nothing, and how long each took in µs; then, if the input says so, a message or the end of its process."""

    async def execute(self, input_data):
        function = nothing_in_a_thread if input_data.get("thread") else nothing
        took = []
        for _ in range(input_data.get("steps", 0)):
            begun = time.perf_counter()
            await self.context.step("nothing", function)
            took.append(round((time.perf_counter() - begun) * 1e6))
        if input_data.get("receive"):
            await self.context.receive()
        at = None
        if "marker" in input_data:
            at = await self.context.step("first new", first_new, input_data["marker"])
        return {"took": took, "at": at}
