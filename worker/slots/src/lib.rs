//! One node's sessions, slots and leases as a pure machine.
