"""A placeholder for an agent that loads a model: slow to start, quick to run."""

import asyncio

from atlas.runtime.base import AgentBase

# Counts for the whole process: a second job in a warm slot finds 1, as does the first in any new one.
starts = 0


class SlowStarter(AgentBase):
    async def on_startup(self):
        global starts
        await asyncio.sleep(0.5)
        starts += 1

    async def execute(self, input_data):
        return {"result": "processed: " + input_data["text"], "startup_count": starts}
