//! Whole sessions over a loopback port.
