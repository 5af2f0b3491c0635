//! The HTTP door over real sockets: shapes of Atlas for Python, and hostile input.

mod approvals;
mod approvals_hold;
mod batch;
mod client;
mod conversations;
mod declared;
mod explain;
mod externals;
mod family;
mod hostile;
mod large;
mod messages;
mod names;
mod namespaces;
mod policies;
mod registry;
mod scaler;
mod shapes;
mod skills;
mod streams;
mod triggers;
