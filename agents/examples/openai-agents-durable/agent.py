"""An agent of the OpenAI Agents SDK whose model calls go through the job and whose tools are steps.

The job's model takes and gives texts, so the adapter asks it for one JSON object: an answer, or a tool call.
"""

import json

from agents import Agent, ModelResponse, RunConfig, Runner, Usage, function_tool
from agents.models.interface import Model
from atlas.durable import step
from atlas.runtime.base import AgentBase
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText


@function_tool
@step
async def weather(city: str) -> str:
    """The weather of a city."""
    return f"rain in {city}"


def asked(system, items, tools):
    """The conversation as a text."""
    lines = [f"system: {system}"]
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        kind = item.get("type", "message")
        if kind == "function_call":
            lines.append(f"called {item['name']} with {item['arguments']}")
        elif kind == "function_call_output":
            lines.append(f"it returned {item['output']}")
        else:
            lines.append(f"{item['role']}: {item['content']}")
    known = [{"name": tool.name, "input": tool.params_json_schema} for tool in tools]
    form = 'Answer with JSON: {"tool": NAME, "input": {…}} or {"answer": TEXT}.'
    return "\n".join([*lines, f"tools: {json.dumps(known, sort_keys=True)}", form])


class JobModel(Model):
    """The model of the job."""

    def __init__(self, context):
        self._context = context
        self._calls = 0

    async def get_response(self, system_instructions, input, model_settings, tools, *_args, **_options):
        answer = await self._context.model(asked(system_instructions, input, tools))
        said = json.loads(answer.text)
        self._calls += 1
        if "tool" in said:
            output = ResponseFunctionToolCall(
                call_id=f"call-{self._calls}", name=said["tool"], arguments=json.dumps(said["input"]), type="function_call"
            )
        else:
            text = ResponseOutputText(text=said["answer"], type="output_text", annotations=[])
            output = ResponseOutputMessage(
                id=f"message-{self._calls}", content=[text], role="assistant", status="completed", type="message"
            )
        usage = Usage(requests=1, input_tokens=answer.input_tokens, output_tokens=answer.output_tokens)
        return ModelResponse(output=[output], usage=usage, response_id=None)

    def stream_response(self, *_args, **_options):
        raise NotImplementedError("the job's model answers as a whole")


class Forecaster(AgentBase):
    async def execute(self, input_data):
        agent = Agent(name="forecaster", instructions="You know the weather.", tools=[weather], model=JobModel(self.context))
        result = await Runner.run(agent, input_data["question"], run_config=RunConfig(tracing_disabled=True))
        return {"answer": result.final_output}
