//! The agents that ship with Atlas.
