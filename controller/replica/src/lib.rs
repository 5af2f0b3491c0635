//! One replica's pure step, and the head on which the leader plans.
