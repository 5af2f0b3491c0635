"""Compares the schema of an output with the schema of an input, as a chain does between two steps.

The decisions are those of the platform. Only top-level properties and their single `type` count. A part of a schema that
has the wrong form declares nothing; it is no error.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from atlas.contract.types import SchemaSpec
from atlas.mediation.report import Coercion, CompatibilityReport, CompatLevel
from atlas.mediation.similarity import similarity

__all__ = ["CompatLevel", "CompatibilityReport", "analyze_compatibility"]

# The least similarity of a rename.
_SIMILARITY_MIN = 0.5

# The confidence where nothing was renamed.
_CERTAIN = 0.9

_SCALARS = {"string", "integer", "number", "boolean"}
_TYPES = _SCALARS | {"array", "object", "null"}

# Types that a model can write or read.
_OPEN = {"string", "object", "array", "unknown"}

# The conversions between scalars. Some values can fail them, such as a text that is no number.
_CASTS = {
    ("integer", "string"),
    ("number", "string"),
    ("boolean", "string"),
    ("integer", "number"),
    ("string", "number"),
    ("number", "integer"),
    ("string", "integer"),
    ("string", "boolean"),
}


def analyze_compatibility(
    output_schema: SchemaSpec | Mapping[str, Any],
    input_schema: SchemaSpec | Mapping[str, Any],
    input_map: Mapping[str, Any] | None = None,
) -> CompatibilityReport:
    """Reports whether an agent's output fits the input of the next agent, and what a chain does with it.

    `input_map` is that of the chain's step: field of the input to path, field of the output, or value.
    """
    return _Comparison(_raw(output_schema), _raw(input_schema)).report(input_map)


class _Comparison:
    """The parts of both schemas that count."""

    def __init__(self, source: Any, target: Any) -> None:
        self.output = _properties(source)
        self.input = _properties(target)
        self.required = _texts(_member(target, "required"))

    def report(self, input_map: Any) -> CompatibilityReport:
        if not self.input:
            return self.done(CompatLevel.IDENTICAL, {}, 1.0)
        direct = {name: name for name, _, _ in self.same_named()}
        all_fit = all(_fits(source, _type(prop)) for _, source, prop in self.same_named())
        if all_fit and len(direct) == len(self.output) == len(self.input):
            return self.done(CompatLevel.IDENTICAL, direct, 1.0)
        if all_fit and all(name in direct for name in self.required):
            return self.done(CompatLevel.SUPERSET, direct, 1.0)
        if isinstance(input_map, Mapping) and all(name in input_map for name in self.required):
            return self.done(CompatLevel.MAPPABLE, dict(input_map), 0.95, notes=self.notes(input_map))
        mappings, coercions, still_open = self.coercions()
        if not still_open:
            return self.done(CompatLevel.COERCIBLE, mappings, _confidence(coercions), coercions=coercions)
        source_is_open = any(_type(prop) in _OPEN for prop in self.output.values())
        target_is_open = any(_type(self.input.get(name)) in _OPEN for name in self.required)
        if source_is_open and target_is_open:
            return self.done(CompatLevel.SEMANTIC, direct, 0.5, unmapped_required=list(self.required))
        notes = ["No viable transformation path found"]
        return self.done(CompatLevel.INCOMPATIBLE, direct, 1.0, unmapped_required=still_open, notes=notes)

    def same_named(self) -> Iterator[tuple[str, str, Any]]:
        """The fields that both sides have: name, type in the source, property of the target."""
        for name, prop in self.input.items():
            if name in self.output:
                yield name, _type(self.output[name]), prop

    def coercions(self) -> tuple[dict[str, Any], list[Coercion], list[str]]:
        """The mapping with renamed and converted fields, the changes, and the required fields that stay open.

        The targets are tried in the order of `required`, the sources in the order of their schema.
        """
        mappings: dict[str, Any] = {}
        coercions: list[Coercion] = []
        for name, source_type, prop in self.same_named():
            fits = _fits(source_type, _type(prop))
            if fits or _is_castable(source_type, prop):
                mappings[name] = name
                if not fits:
                    coercions.append(_cast(name, name, source_type, _type(prop), 1.0))
        still_open: list[str] = []
        used = {name for name, _, _ in self.same_named()}
        for target in [name for name in self.required if name not in mappings]:
            source, score = self.most_similar(target, used)
            coercion = None if source is None else self.change(source, target, score)
            if coercion is None:
                still_open.append(target)
                continue
            coercions.append(coercion)
            mappings[target] = source
            used.add(source)
        defaults = [name for name in still_open if _has_default(self.input.get(name))]
        coercions += [Coercion("default", "", name, {"value": self.input[name]["default"]}) for name in defaults]
        return mappings, coercions, [name for name in still_open if name not in defaults]

    def most_similar(self, target: str, used: set[str]) -> tuple[str | None, float]:
        """The unused source with the highest score, if that is high enough; of several, the first."""
        scores = [(name, similarity(name, target)) for name in self.output if name not in used]
        best = max(scores, key=lambda scored: scored[1], default=(None, 0.0))
        return best if best[1] >= _SIMILARITY_MIN else (None, 0.0)

    def change(self, source: str, target: str, score: float) -> Coercion | None:
        """How the field of the source becomes the field of the target, if it can."""
        prop = self.input.get(target)
        source_type, target_type = _type(self.output[source]), _type(prop)
        fits = _fits(source_type, target_type)
        if fits and (source_type, target_type) != ("integer", "number"):
            return Coercion("rename", source, target, {"similarity": score})
        if fits or _is_castable(source_type, prop):
            return _cast(source, target, source_type, target_type, score)
        return None

    def notes(self, input_map: Mapping[str, Any]) -> list[str]:
        """Which entries of the map are no fields of the output."""
        notes = []
        for target, value in input_map.items():
            if isinstance(value, str) and value in self.output:
                continue
            if isinstance(value, str) and value.startswith("$."):
                notes.append(f"{target} is taken from the path {value}")
            else:
                text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
                notes.append(f"{target} is the fixed value {text}")
        return notes

    def done(self, level: CompatLevel, mappings: dict[str, Any], confidence: float, **rest: Any) -> CompatibilityReport:
        unmapped = [name for name in self.input if name not in self.required and name not in mappings]
        return CompatibilityReport(level, mappings, unmapped_optional=unmapped, confidence=confidence, **rest)


def _raw(schema: Any) -> Any:
    return schema.raw if isinstance(schema, SchemaSpec) else schema


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _properties(schema: Any) -> dict[str, Any]:
    properties = _member(schema, "properties")
    if not isinstance(properties, Mapping):
        return {}
    return {name: prop for name, prop in properties.items() if isinstance(name, str)}


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, (list, tuple)) else []


def _type(prop: Any) -> str:
    """The declared type of a property; `unknown` if there is none, or in a form that is not read."""
    declared = _member(prop, "type")
    return declared if isinstance(declared, str) and declared in _TYPES else "unknown"


def _fits(source: str, target: str) -> bool:
    """Whether a value fits without a change."""
    return source == target or "unknown" in (source, target) or (source, target) == ("integer", "number")


def _is_castable(source: str, prop: Any) -> bool:
    """Whether there is a conversion to a property."""
    target = _type(prop)
    if target == "array":
        return source in _SCALARS
    if target == "object":
        return source in _SCALARS and _takes_scalar(prop)
    return (source, target) in _CASTS


def _takes_scalar(prop: Any) -> bool:
    """Whether one property of an object can hold a scalar: the only one, the only required one, or `value`."""
    properties = _properties(prop)
    return len(properties) == 1 or len(_texts(_member(prop, "required"))) == 1 or "value" in properties


def _has_default(prop: Any) -> bool:
    return isinstance(prop, Mapping) and "default" in prop


def _cast(source: str, target: str, source_type: str, target_type: str, score: float) -> Coercion:
    details = {"from_type": source_type, "to_type": target_type, "similarity": score}
    return Coercion("cast", source, target, details)


def _confidence(coercions: list[Coercion]) -> float:
    """The lowest similarity of a rename, with two decimals."""
    read = [change for change in coercions if change.op_type != "default"]
    renamed = [change.details["similarity"] for change in read if change.source_field != change.target_field]
    lowest = min(renamed, default=_CERTAIN)
    # Halves are rounded up, as the platform does; `round` would take the even neighbour.
    return math.floor(lowest * 100.0 + 0.5) / 100.0
