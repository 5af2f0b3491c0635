"""Returns its message unchanged."""

from atlas.runtime.base import AgentBase


class Echo(AgentBase):
    async def execute(self, input_data):
        return {"message": input_data["message"]}
