"""An agent of Pydantic AI whose model calls go through the job and whose tools are steps.

The job's model takes and gives texts, so the adapter asks it for one JSON object: an answer, or a tool call. Ids that the package
draws by chance are left out of what is asked, because they differ in each attempt.
"""

import json

from atlas.durable import step
from atlas.runtime.base import AgentBase
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel


@step
async def weather(city: str) -> str:
    """The weather of a city."""
    return f"rain in {city}"


def asked(messages, info):
    """The conversation as a text."""
    tools = [{"name": tool.name, "input": tool.parameters_json_schema} for tool in info.function_tools]
    lines = []
    for part in (part for message in messages for part in message.parts):
        if part.part_kind == "tool-call":
            lines.append(f"called {part.tool_name} with {json.dumps(part.args_as_dict(), sort_keys=True)}")
        elif part.part_kind == "tool-return":
            lines.append(f"{part.tool_name} returned {part.model_response_str()}")
        else:
            lines.append(f"{part.part_kind}: {part.content}")
    form = 'Answer with JSON: {"tool": NAME, "input": {…}} or {"answer": TEXT}.'
    return "\n".join([*lines, f"tools: {json.dumps(tools, sort_keys=True)}", form])


class Forecaster(AgentBase):
    async def answer(self, messages, info):
        said = json.loads((await self.context.model(asked(messages, info))).text)
        if "tool" in said:
            return ModelResponse(parts=[ToolCallPart(said["tool"], said["input"])])
        return ModelResponse(parts=[TextPart(said["answer"])])

    async def execute(self, input_data):
        agent = Agent(FunctionModel(self.answer), instructions="You know the weather.", tools=[weather])
        result = await agent.run(input_data["question"])
        return {"answer": result.output}
