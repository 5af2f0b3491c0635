//! Scripts of events and the effects that they cause.

mod check;
mod compatible;
mod extended;
mod hostile;
mod properties;
