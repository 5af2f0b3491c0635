//! Metric names, log set-up.
