"""Runs one example agent with an injected provider, which answers what the row says. Reads the case from stdin, and prints how the agent ended."""

import asyncio
import json
import sys

from atlas.contract.types import AgentContract
from atlas.llm.provider import LLMResponse
from atlas.runtime.context import AgentContext
from atlas.runtime.runner import run_agent


class Provider:
    def __init__(self, case):
        self.prompts = []
        self._response = LLMResponse(case["text"], *case["tokens"], case["model"])

    async def complete(self, prompt, **kwargs):
        self.prompts.append(prompt)
        return self._response


case = json.load(sys.stdin)
provider = Provider(case)
context = AgentContext(providers={case["injected_as"]: provider})
contract = AgentContract.from_dict(case["contract"])
result = asyncio.run(run_agent(case["directory"], case["input"], contract=contract, context=context))
answer = {"prompt": provider.prompts[-1] if provider.prompts else None, "execution_metadata": context.execution_metadata}
answer.update({"output": result.data} if result.success else {"error": result.error})
json.dump(answer, sys.stdout)
