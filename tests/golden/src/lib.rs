//! Old bytes still read.
