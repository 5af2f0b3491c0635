//! Tests that keep the tree tidy.
