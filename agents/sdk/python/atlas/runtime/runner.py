"""Runs one agent directory in this process, for tests and tries; a cluster is not needed."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from atlas.contract.types import AgentContract
from atlas.runtime.context import AgentContext
from atlas.runtime.loader import load_agent_class


@dataclass
class AgentResult:
    """How the run ended."""

    success: bool
    data: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    agent_name: str = ""
    execution_ms: float = 0.0


async def run_agent(
    directory: str | Path,
    input_data: dict[str, Any],
    *,
    contract: AgentContract | None = None,
    context: AgentContext | None = None,
) -> AgentResult:
    """Starts the agent of a directory, gives it one input, shuts it down. Without a contract it gets an empty one."""
    directory = Path(directory)
    contract = contract or AgentContract(name=directory.name, version="0.0.0")
    context = context or AgentContext()
    agent = load_agent_class(directory)(contract, context)
    began = time.perf_counter()
    try:
        await agent.on_startup()
        data = await agent.execute(input_data)
        result = AgentResult(True, data)
    except Exception as error:
        result = AgentResult(False, error=str(error))
    finally:
        await agent.on_shutdown()
    result.agent_name = contract.name
    result.execution_ms = (time.perf_counter() - began) * 1000
    return result
