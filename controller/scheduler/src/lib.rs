//! Placement over a narrow read trait, and the reason for each job left waiting.
