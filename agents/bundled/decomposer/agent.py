"""Has each message echoed by a job of its own, one after the other."""

from atlas.runtime.base import AgentBase


class Decomposer(AgentBase):
    async def execute(self, input_data):
        results = []
        for message in input_data["messages"]:
            child = await self.context.spawn("echo", {"message": message})
            results.append({"success": child.success, "data": child.data, "error": child.error})
        return {"results": results, "count": len(results)}
