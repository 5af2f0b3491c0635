//! Today's code reads old bytes to the same values, and writes the same bytes for the same values.
//!
//! `UPDATE_GOLDEN=1` writes the output of today's code. That is a change of format: read the diff. Once a release has
//! written the old bytes, they keep their folder and the new ones get another.

mod contracts;
mod files;
mod hostile;
mod numbers;
mod replay;
mod samples;
mod state;
mod wire;
