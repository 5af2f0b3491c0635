//! Tests of the whole crate.

mod crds;
