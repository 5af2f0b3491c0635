"""Takes a text or an object with a value."""

from atlas.runtime.base import AgentBase


class MultiType(AgentBase):
    async def execute(self, input_data):
        data = input_data["data"]
        text = data if isinstance(data, str) else data["value"]
        return {"processed": text, "mode_used": input_data["mode"]}
