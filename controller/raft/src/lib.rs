//! openraft on our own log, and the leader loop.
