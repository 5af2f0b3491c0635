//! Old bytes still read: everything that was ever written down is in `data/`, a folder a format version, and today's code must
//! read it to the same values. Nothing else is here; the tests are in `tests/golden/`.
