//! Benchmarks behind cargo xtask bench.

fn main() {}
