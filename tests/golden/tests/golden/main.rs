//! Today's code reads yesterday's bytes to the same values, and writes the same bytes for the same values.
//!
//! `UPDATE_GOLDEN=1` writes what today's code says. That is a change of format: the diff is to be read, and once a release has
//! written the old bytes they get a new folder instead.

mod contracts;
mod files;
mod hostile;
mod replay;
mod samples;
mod state;
mod wire;
