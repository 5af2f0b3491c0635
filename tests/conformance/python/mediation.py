"""Checks `atlas.mediation` of the Python SDK against rows of conformance: `mediation.py FILE.jsonl …`, SDK on PYTHONPATH.

Rows of other kinds are not read. Of a mediation, only the report is checked: the SDK converts no data. Each difference
is a line; the last line is the number of rows that pass. The exit status is 1 after a difference.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from atlas.contract.types import SchemaSpec
from atlas.mediation.analyzer import CompatibilityReport, analyze_compatibility
from atlas.mediation.similarity import similarity, tokenize


def words(given: dict[str, Any], expect: dict[str, Any]) -> Iterator[str]:
    """A row of kind `tokenize`."""
    yield from different("tokens", tokenize(given["name"]), expect["tokens"])


def score(given: dict[str, Any], expect: dict[str, Any]) -> Iterator[str]:
    """A row of kind `similarity`; rows have six decimals."""
    yield from different("score", round(similarity(given["source"], given["target"]), 6), expect["score"])


def report(given: dict[str, Any], expect: dict[str, Any]) -> Iterator[str]:
    """A row of kind `mediate`, with schemas as dictionaries and as `SchemaSpec`."""
    source, target, input_map = given["source_schema"], given["target_schema"], given.get("input_map")
    found = analyze_compatibility(source, target, input_map)
    if found != analyze_compatibility(SchemaSpec(source), SchemaSpec(target), input_map):
        yield "a SchemaSpec has another report than its dictionary"
    shown = {**found.to_dict(), "coercions": changes(found)}
    for name, wanted in expect.get("report", {}).items():
        if name == "coercions":
            wanted = sorted(wanted, key=lambda change: change["target"])
        yield from different(name, shown.get(name), wanted)
    # An unsuccessful row has no strategy where none was applied, and the report still names that of the level.
    if expect.get("success"):
        yield from different("strategy", found.strategy, expect["strategy"])


def changes(found: CompatibilityReport) -> list[dict[str, Any]]:
    """The changes under the names of the rows, sorted by field, because their order has no meaning."""
    shown = []
    for change in found.coercions:
        details = dict(change.details)
        if "similarity" in details:
            details["similarity"] = round(details["similarity"], 6)
        shown.append({"op": change.op_type, "source": change.source_field, "target": change.target_field, **details})
    return sorted(shown, key=lambda change: change["target"])


def different(name: str, found: Any, wanted: Any) -> Iterator[str]:
    """A difference between two JSON values; `1` is not `true`."""
    found, wanted = (json.dumps(value, sort_keys=True) for value in (found, wanted))
    if found != wanted:
        yield f"{name}: expected {wanted}, found {found}"


KINDS = {"tokenize": words, "similarity": score, "mediate": report}


def main(files: list[str]) -> int:
    """Checks all rows of the files."""
    passed, failed = 0, 0
    for file in files:
        for line in Path(file).read_text(encoding="utf-8").splitlines():
            row = json.loads(line) if line.strip() else {}
            if row.get("kind") not in KINDS:
                continue
            try:
                differences = list(KINDS[row["kind"]](row["in"], row["expect"]))
            except Exception as error:  # reported with the name of the row
                differences = [f"{type(error).__name__}: {error}"]
            for difference in differences:
                print(f"{row['id']}: {difference}")
            passed, failed = passed + (not differences), failed + bool(differences)
    print(f"{passed} passed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
