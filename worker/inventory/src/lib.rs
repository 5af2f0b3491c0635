//! What hardware a node has.
