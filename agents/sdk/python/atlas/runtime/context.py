"""The context of a running agent: one object per slot, its fields are replaced for every job."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Awaitable, Callable

from atlas._channel import OtherProcessError
from atlas.contract.permissions import PermissionsSpec
from atlas.knowledge.provider import KnowledgeEntry
from atlas.llm.provider import LLMError, LLMProvider, WorkerProvider
from atlas.runtime import documents, library
from atlas.runtime.durable import DurableCalls
from atlas.runtime.library import SharedMemory
from atlas.skills.types import SkillInvocationError

__all__ = ["AgentContext", "SkillInvocationError", "SpawnError", "SpawnResult"]

_RUN = "atlas.exec.run"
_RUN_TIMEOUT = 365 * 24 * 3600.0  # the job's own limit ends the wait

_CALLS = ("_progress", "_delta", "_spawn_callback", "_tool_callback", "_model_callback")


def _refuse(*_args, **_options):
    raise OtherProcessError()


class SpawnError(RuntimeError):
    """A job could not be spawned: the agent has no permission, the depth limit is reached, or there is no worker."""


@dataclass
class SpawnResult:
    """The result of a spawned job."""

    success: bool
    data: dict[str, Any] = field(default_factory=dict)
    error: str = ""


class _Elsewhere:
    """The recorded calls in a copy for another process."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise OtherProcessError()


@dataclass
class AgentContext(DurableCalls):
    """The job's data, and the calls that go through the worker."""

    job_id: str = ""
    chain_name: str = ""
    step_index: int = -1
    chain_data: dict[str, Any] = field(default_factory=dict)
    depth: int = 0
    max_depth: int = 3
    spawn_allowed: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    providers: dict[str, Any] = field(default_factory=dict)
    permissions: PermissionsSpec | None = None
    secrets: dict[str, str] = field(default_factory=dict)
    execution_metadata: dict[str, Any] = field(default_factory=dict)
    _skills: dict[str, Callable[[dict], Awaitable[dict]]] = field(default_factory=dict, repr=False)
    _progress: Callable[[str], None] | None = field(default=None, repr=False)
    _delta: Callable[[str, int, int], None] | None = field(default=None, repr=False)
    _spawn_callback: Callable[..., Awaitable[dict]] | None = field(default=None, repr=False)
    _tool_callback: Callable[[str, Any], Awaitable[dict]] | None = field(default=None, repr=False)
    _model_callback: Callable[[dict], Awaitable[dict]] | None = field(default=None, repr=False)
    _memory_on: bool = field(default=False, repr=False)
    _knowledge_on: bool = field(default=False, repr=False)
    _model: str | None = field(default=None, repr=False)
    _no_model: str = field(default="the agent does not run in a cluster", repr=False)

    @property
    def _is_durable(self) -> bool:
        return "_durable" in vars(self)

    @property
    def llm(self) -> LLMProvider:
        """The model that the job has from its namespace, or from the worker's environment. The worker calls it: without a package, without a key."""
        if self._model is None or self._model_callback is None:
            raise LLMError(f"the job has no model: {self._no_model}")
        return WorkerProvider(self._model, self._model_callback)

    def __getstate__(self):
        # A copy for another process, such as that of a pool: the calls go through the agent's own process.
        state = vars(self) | {"_skills": {}}
        if "_durable" in state:
            state["_durable"] = _Elsewhere()
        return {name: _refuse if name in _CALLS and value is not None else value for name, value in state.items()}

    def spawn(
        self, agent_name: str, input_data: dict[str, Any], priority: int = 0, timeout: float | None = None
    ) -> Awaitable[SpawnResult]:
        """Submits a job for another agent and waits for its end, or that of the retries that follow it, at most `timeout` seconds: 60 if
        it says nothing, and in a durable agent without a limit.

        Several calls at once run side by side. A child that is not finished in time is cancelled.
        """
        if not self._is_durable:
            return self._spawn(agent_name, input_data, priority, 60.0 if timeout is None else timeout)
        ask = self._durable.spawned([(agent_name, input_data, priority, timeout, False)], self._spawned)

        async def one(port):
            (result,) = await ask(port)
            return result

        return self._durable.through(one)

    async def _spawn(self, agent_name, input_data, priority, timeout) -> SpawnResult:
        if not self.spawn_allowed:
            raise SpawnError("Agent does not have spawn_agents permission")
        if self.depth >= self.max_depth:
            raise SpawnError(f"Max spawn depth ({self.max_depth}) exceeded at depth {self.depth}")
        if self._spawn_callback is None:
            raise SpawnError("No spawn callback configured — agent not running in pool")
        return self._spawned(await self._spawn_callback(agent_name, input_data, priority, timeout))

    def _spawned(self, end) -> SpawnResult:
        if "refused" in end:
            raise SpawnError(end["refused"])
        if "error" in end:
            return SpawnResult(False, error=end["error"])
        return SpawnResult(True, end["data"])

    def skill(self, name: str, input_data: dict[str, Any]) -> Awaitable[dict[str, Any]]:
        """Calls a skill that the contract requires."""
        if not self._is_durable:
            return self._skill(name, input_data)
        call = self._required(name)
        if name == _RUN:
            return self._durable.through(partial(self._run_agent, input_data))
        if call.func == self._tool:
            return self.call_tool(name, input_data)
        ask = self._durable.spawned([(name, input_data, 0, _RUN_TIMEOUT, True)], self._skill_ended)

        async def one(port):
            (data,) = await ask(port)
            return data

        return self._durable.through(one)

    async def _skill(self, name: str, input_data: dict[str, Any]) -> dict[str, Any]:
        return await self._required(name)(input_data)

    def _required(self, name: str) -> Callable[..., Awaitable[dict]]:
        call = self._skills.get(name)
        if call is None:
            raise SkillInvocationError(f"Skill '{name}' not available — declare it in requires.skills")
        return call

    def _skill_ended(self, end) -> dict[str, Any]:
        if "data" not in end:
            raise SkillInvocationError(end.get("refused") or end.get("error"))
        return end["data"]

    async def _tool(self, name: str, input_data: dict[str, Any]) -> dict[str, Any]:
        """Calls a tool of the platform."""
        return self._skill_ended(await self._tool_callback(name, input_data))

    async def _call_skill(self, name: str, input_data: dict[str, Any]) -> dict[str, Any]:
        """Runs a deployed skill: a job of its own, for which no permission to spawn is needed."""
        return self._skill_ended(await self._spawn_callback(name, input_data, 0, _RUN_TIMEOUT, skill=True))

    async def _run_agent(self, input_data: dict[str, Any], port: Any = None) -> dict[str, Any]:
        """The tool `atlas.exec.run`: a job that this one spawns. It reports a failure as a value. `port` is that of a durable agent."""
        agent = str(input_data.get("agent") or "")
        result = {"success": False, "data": None, "error": "", "agent_name": agent}
        if not agent:
            return {**result, "error": "Missing 'agent' parameter"}
        try:
            job = (agent, input_data.get("input") or {}, 0, _RUN_TIMEOUT)
            if port is None:
                child = await self._spawn(*job)
            else:
                (child,) = await self._durable.spawned([(*job, False)], self._spawned)(port)
        except SpawnError as error:
            return {**result, "error": str(error)}
        if child.success:
            return {**result, "success": True, "data": child.data}
        unknown = child.error.startswith("Pool error: Agent not found")
        return {**result, "error": f"Agent not found: {agent}" if unknown else child.error}

    @property
    def memory(self) -> SharedMemory:
        """The memory that agents share: `await context.memory.read()`, and `context.memory.of("agent")` for another scope."""
        return SharedMemory(self)

    def memory_read(self) -> Awaitable[str]:
        """The shared memory; empty if it is not enabled."""
        return self.memory.read()

    def memory_write(self, content: str) -> Awaitable[None]:
        """Replaces the shared memory."""
        return self.memory.write(content)

    def memory_append(self, entry: str) -> Awaitable[None]:
        """Adds to the shared memory."""
        return self.memory.append(entry)

    def knowledge_search(
        self, query: str, *, domain: str | None = None, tags: list[str] | None = None, limit: int = 10
    ) -> Awaitable[list[KnowledgeEntry]]:
        """Entries of the knowledge base that the agent may read; none if it is not enabled."""
        return library.search(self, query, domain, tags, limit)

    def knowledge_get(self, entry_id: str) -> Awaitable[KnowledgeEntry | None]:
        """One entry, if it exists and the agent may read it."""
        return library.get(self, entry_id)

    def knowledge_store(
        self,
        content: str,
        *,
        domain: str = "general",
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Awaitable[KnowledgeEntry]:
        """Adds an entry."""
        return library.store(self, content, domain, tags, metadata)

    def knowledge_update(
        self,
        entry_id: str,
        *,
        content: str | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Awaitable[KnowledgeEntry | None]:
        """Changes an entry; none if it does not exist, or the agent may not read it."""
        return library.update(self, entry_id, content, tags, metadata)

    def search_documents(
        self,
        base: str,
        query: str,
        *,
        top_k: int | None = None,
        source: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Awaitable[list[dict[str, Any]]]:
        """The parts of a document base that fit a question, the best first. The contract names the base in `requires.documents`."""
        return documents.search(self, base, query, top_k, source, metadata)

    def progress(self, text: str) -> None:
        """Reports the progress of the job to its followers. Outside of a worker it does nothing."""
        if self._progress is not None:
            self._progress(str(text))

    def delta(self, text: str, *, step: int = 0, attempt: int = 1) -> None:
        """Passes a piece of an answer that forms to current followers; it is not stored. A higher `attempt` starts the answer of `step` over."""
        if self._delta is not None:
            self._delta(str(text), step, attempt)

    def _begin(self, fields: dict[str, Any]) -> None:
        """Replaces the data of one job; `providers` belong to the slot."""
        self.job_id = fields.get("job_id", "")
        self.chain_name = fields.get("chain_name", "")
        self.step_index = fields.get("step_index", -1)
        self.chain_data = fields.get("chain_data") or {}
        self.depth = fields.get("depth", 0)
        self.max_depth = fields.get("max_depth", 3)
        self.spawn_allowed = fields.get("spawn_allowed", False)
        self.metadata = fields.get("metadata") or {}
        self.secrets = fields.get("secrets") or {}
        self.execution_metadata = {}
        self._model, self._no_model = fields.get("model"), fields.get("no_model") or ""
        self._skills = {name: partial(self._tool, name) for name in fields.get("tools") or []}
        self._skills.update((name, partial(self._call_skill, name)) for name in fields.get("skills") or [])
        if _RUN in self._skills:
            self._skills[_RUN] = self._run_agent
