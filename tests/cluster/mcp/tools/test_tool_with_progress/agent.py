import asyncio
from atlas.runtime.base import AgentBase


class Agent(AgentBase):
    async def execute(self, input):
        for step in (0, 50, 100):
            self.context.progress(f"step {step}")
            await asyncio.sleep(0.05)
        return {"result": "done"}
