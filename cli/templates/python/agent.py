from atlas.runtime.base import AgentBase


class Agent(AgentBase):
    async def execute(self, input_data):
        return {"greeting": f"Hello, {input_data['name']}"}
