"""The permissions of an agent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class PermissionsSpec:
    """`permissions` of a contract."""

    filesystem: list[str] = field(default_factory=lambda: ["read"])
    network: list[str] = field(default_factory=lambda: ["outbound"])
    spawn: bool = False
    max_memory_mb: int = 512
    max_cpu_seconds: int = 60
    secrets: list[str] = field(default_factory=list)
    isolation: str = "process"
    container_image: str = ""

    @classmethod
    def from_dict(cls, data: dict[str, Any] | None) -> PermissionsSpec:
        """Takes the known keys."""
        known = cls.__dataclass_fields__
        return cls(**{key: value for key, value in (data or {}).items() if key in known})
