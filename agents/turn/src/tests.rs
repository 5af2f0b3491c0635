//! Scripts of events and the effects that they cause.

mod check;
mod compatible;
mod extended;
mod guard;
mod hostile;
mod judged;
mod pages;
mod properties;
mod replay;
mod shared;
mod texts;
mod todo;
