"""Whether the output of one agent fits the input of the next."""

from atlas.mediation.analyzer import analyze_compatibility
from atlas.mediation.report import Coercion, CompatibilityReport, CompatLevel

__all__ = ["Coercion", "CompatLevel", "CompatibilityReport", "analyze_compatibility"]
