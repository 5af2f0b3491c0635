"""What a skill is, and what may go wrong with one."""

from __future__ import annotations

from dataclasses import dataclass, field

from atlas.contract.types import SchemaSpec


class SkillError(RuntimeError):
    """A skill could not be found or loaded."""


class SkillInvocationError(SkillError):
    """An agent called a skill that it was not given."""


@dataclass(frozen=True)
class SkillSpec:
    """`skill.yaml`."""

    name: str
    version: str = "0.0.0"
    description: str = ""
    input_schema: SchemaSpec = field(default_factory=SchemaSpec)
    output_schema: SchemaSpec = field(default_factory=SchemaSpec)
