//! The HTTP door over real sockets: shapes of the source system, and input that nobody should send.

mod client;
mod hostile;
mod large;
mod registry;
mod shapes;
mod streams;
