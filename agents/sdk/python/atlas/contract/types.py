"""A contract as plain objects, read from the JSON that the worker passes on. Already validated: nothing is refused here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from atlas.contract.permissions import PermissionsSpec


def _known(cls, data: dict[str, Any] | None):
    known = cls.__dataclass_fields__
    return cls(**{key: value for key, value in (data or {}).items() if key in known})


@dataclass(frozen=True)
class SchemaSpec:
    """A JSON Schema."""

    raw: dict[str, Any] = field(default_factory=lambda: {"type": "object"})

    @property
    def type(self) -> str:
        return self.raw.get("type", "object")

    @property
    def properties(self) -> dict[str, Any]:
        return self.raw.get("properties", {})

    @property
    def required(self) -> list[str]:
        return self.raw.get("required", [])

    def to_json_schema(self) -> dict[str, Any]:
        """The schema as written, for validators."""
        return dict(self.raw)


@dataclass(frozen=True)
class HardwareSpec:
    """`hardware`."""

    gpu: bool = False
    gpu_vram_gb: int = 0
    min_memory_gb: int = 1
    min_cpu_cores: int = 1
    architecture: str = "any"
    node_affinity: str = ""
    device_access: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ModelSpec:
    """`model`."""

    preference: str = "balanced"
    override_allowed: bool = True


@dataclass(frozen=True)
class KnowledgeRequirement:
    """`requires.knowledge`."""

    enabled: bool = False
    read_domains: list[str] = field(default_factory=lambda: ["*"])
    write_domains: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class AgentDependency:
    """One of `requires.agents`."""

    name: str
    version: str = "*"


@dataclass(frozen=True)
class RequiresSpec:
    """`requires`."""

    platform_tools: bool = False
    spawn_agents: bool = False
    skills: list[str] = field(default_factory=list)
    memory: bool | str = False
    knowledge: KnowledgeRequirement = field(default_factory=KnowledgeRequirement)
    agents: list[AgentDependency] = field(default_factory=list)

    @classmethod
    def from_dict(cls, data: dict[str, Any] | None) -> RequiresSpec:
        data = dict(data or {})
        knowledge = data.get("knowledge")
        if isinstance(knowledge, dict):
            data["knowledge"] = _known(KnowledgeRequirement, {"enabled": True, **knowledge})
        else:
            data["knowledge"] = KnowledgeRequirement(enabled=bool(knowledge))
        agents = data.get("agents") or []
        data["agents"] = [AgentDependency(a) if isinstance(a, str) else _known(AgentDependency, a) for a in agents]
        return _known(cls, data)


@dataclass(frozen=True)
class RetrySpec:
    """`retry`."""

    max_retries: int = 0
    backoff_base: float = 2.0


@dataclass(frozen=True)
class ProviderSpec:
    """`provider`."""

    type: str = "python"
    command: list[str] = field(default_factory=list)
    system_prompt: str = ""
    focus: str = ""
    output_format: str = "json"
    max_iterations: int = 5


@dataclass(frozen=True)
class AgentContract:
    """`agent.yaml`."""

    name: str
    version: str
    type: str = "agent"
    description: str = ""
    input_schema: SchemaSpec = field(default_factory=SchemaSpec)
    output_schema: SchemaSpec = field(default_factory=SchemaSpec)
    capabilities: list[str] = field(default_factory=list)
    model: ModelSpec = field(default_factory=ModelSpec)
    requires: RequiresSpec = field(default_factory=RequiresSpec)
    hardware: HardwareSpec = field(default_factory=HardwareSpec)
    retry: RetrySpec = field(default_factory=RetrySpec)
    permissions: PermissionsSpec = field(default_factory=PermissionsSpec)
    provider: ProviderSpec = field(default_factory=ProviderSpec)
    execution_timeout: float = 60.0

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> AgentContract:
        """Reads the normalised contract."""
        provider = data.get("provider") or {}
        return cls(
            name=data["name"],
            version=data["version"],
            type=data.get("type", "agent"),
            description=data.get("description", ""),
            input_schema=SchemaSpec(data.get("input_schema") or {"type": "object"}),
            output_schema=SchemaSpec(data.get("output_schema") or {"type": "object"}),
            capabilities=data.get("capabilities") or [],
            model=_known(ModelSpec, data.get("model")),
            requires=RequiresSpec.from_dict(data.get("requires")),
            hardware=_known(HardwareSpec, data.get("hardware")),
            retry=_known(RetrySpec, data.get("retry")),
            permissions=PermissionsSpec.from_dict(data.get("permissions")),
            provider=_known(ProviderSpec, provider if isinstance(provider, dict) else {"type": provider}),
            execution_timeout=data.get("execution_timeout", 60.0),
        )
