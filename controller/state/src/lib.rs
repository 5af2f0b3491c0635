//! The replicated state: apply, indexes, invariants.
