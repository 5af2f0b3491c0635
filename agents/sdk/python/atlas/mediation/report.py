"""The result of a comparison of two schemas."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class CompatLevel(StrEnum):
    """How well an output fits an input, from best to worst."""

    #: The same fields.
    IDENTICAL = "identical"
    #: All required fields are there.
    SUPERSET = "superset"
    #: The `input_map` has all required fields.
    MAPPABLE = "mappable"
    #: Fields have to be renamed or converted, or have a default.
    COERCIBLE = "coercible"
    #: A model could convert the data.
    SEMANTIC = "semantic"
    INCOMPATIBLE = "incompatible"

    @property
    def strategy(self) -> str:
        """The name of the strategy that a chain applies; empty if there is none."""
        return _STRATEGIES.get(self, "")


_STRATEGIES = {
    CompatLevel.IDENTICAL: "direct",
    CompatLevel.SUPERSET: "direct",
    CompatLevel.MAPPABLE: "mapped",
    CompatLevel.COERCIBLE: "coerce",
    CompatLevel.SEMANTIC: "llm_bridge",
}


@dataclass(frozen=True)
class Coercion:
    """One change of a field: `rename`, `cast` or `default`."""

    op_type: str
    #: The field that is read; empty for a default.
    source_field: str
    #: The field that is produced.
    target_field: str
    #: `similarity` of the names, also `from_type` and `to_type` of a cast; `value` of a default.
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CompatibilityReport:
    """What the comparison found. Some values have two names, because both are in use."""

    level: CompatLevel
    #: Field of the target to field of the source, or the `input_map`.
    direct_mappings: dict[str, Any] = field(default_factory=dict)
    coercions: list[Coercion] = field(default_factory=list)
    #: Required fields of the target without a source.
    unmapped_required: list[str] = field(default_factory=list)
    #: Other fields of the target without a source.
    unmapped_optional: list[str] = field(default_factory=list)
    #: From 0 to 1.
    confidence: float = 1.0
    #: For people.
    notes: list[str] = field(default_factory=list)

    @property
    def can_bridge(self) -> bool:
        """Whether a chain can convert the data, possibly with a model."""
        return self.level is not CompatLevel.INCOMPATIBLE

    @property
    def compatible(self) -> bool:
        """The same as `can_bridge`."""
        return self.can_bridge

    @property
    def strategy(self) -> str:
        """The name of the strategy of the level; empty if there is none."""
        return self.level.strategy

    @property
    def field_mapping(self) -> dict[str, Any]:
        """The same as `direct_mappings`."""
        return self.direct_mappings

    @property
    def warnings(self) -> list[str]:
        """The same as `notes`."""
        return self.notes

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON, under all names: the same document as that of the platform."""
        return {
            "level": self.level.value,
            "direct_mappings": self.direct_mappings,
            "coercions": [dict(vars(coercion)) for coercion in self.coercions],
            "unmapped_required": self.unmapped_required,
            "unmapped_optional": self.unmapped_optional,
            "confidence": self.confidence,
            "notes": self.notes,
            "can_bridge": self.can_bridge,
            "compatible": self.compatible,
            "strategy": self.strategy,
            "field_mapping": self.field_mapping,
            "warnings": self.warnings,
        }
