"""Calls of an orchestrator, several in one job of the cluster."""

from __future__ import annotations

import asyncio
import dataclasses

from atlas.contract.registry import AgentRegistry
from atlas.contract.types import AgentContract
from atlas.pool.job import JobData

_FIELDS = {field.name for field in dataclasses.fields(JobData)}


class Calls:
    """An orchestrator instead of an agent: each call has its own answer, and one that raises does not stop the others.

    The input is `{"calls": [{"call": "route" | "complete" | "failed", "job": {}}], "registry": [contract], "timeout": seconds}`, the output
    `{"answers": [{"action", "agent_name", "priority", "reason"} | {} | {"error"}]}`.
    """

    def __init__(self, orchestrator, context):
        self.context = context
        self._orchestrator = orchestrator

    async def execute(self, input_data):
        registry = AgentRegistry(AgentContract.from_dict(contract) for contract in input_data.get("registry", ()))
        timeout = input_data.get("timeout")
        return {"answers": [await self._answer(call, registry, timeout) for call in input_data.get("calls", ())]}

    async def _answer(self, call, registry, timeout):
        try:
            return await asyncio.wait_for(self._call(call, registry), timeout)
        except asyncio.TimeoutError:
            return {"error": f"no answer within {timeout} s"}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}

    async def _call(self, call, registry):
        job = JobData(**{name: value for name, value in call["job"].items() if name in _FIELDS})
        if call["call"] == "route":
            return _decision(await self._orchestrator.route(job, registry))
        on_end = self._orchestrator.on_job_complete if call["call"] == "complete" else self._orchestrator.on_job_failed
        await on_end(job)
        return {}

    async def on_shutdown(self):
        """An orchestrator has no shutdown."""


def _decision(decision):
    metadata = decision.metadata if isinstance(decision.metadata, dict) else {}
    reason = metadata.get("reason")
    return {
        "action": str(decision.action),
        "agent_name": None if decision.agent_name is None else str(decision.agent_name),
        "priority": None if decision.priority is None else int(decision.priority),
        "reason": None if reason is None else str(reason),
    }
