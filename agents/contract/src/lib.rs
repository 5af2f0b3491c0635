//! Agent contracts: YAML, JSON Schema, semver.
