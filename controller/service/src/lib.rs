//! The functions behind every door.
