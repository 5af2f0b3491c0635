//! What was sent of an answer, and what is left of it.
