//! The HTTP door over real sockets: shapes of the source system, and input that nobody should send.

mod batch;
mod client;
mod family;
mod hostile;
mod large;
mod names;
mod registry;
mod shapes;
mod streams;
