//! Which parameters each operation takes, and what happens to them.
