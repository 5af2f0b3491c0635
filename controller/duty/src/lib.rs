//! Leader duties: pure functions of the state.
