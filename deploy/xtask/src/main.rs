//! Checks, tests, benches.

fn main() {}
