//! The seam to clock, randomness, tasks, network and files.
