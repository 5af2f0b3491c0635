//! Atlas as one seeded program on a simulated network, disk and clock, with real openraft under it.
