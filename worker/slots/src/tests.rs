//! Expect tests in a small language, and properties over random histories.

mod check;
mod drain;
mod jobs;
mod language;
mod parks;
mod properties;
mod replay;
mod room;
mod saved;
mod session;
