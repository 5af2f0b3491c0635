//! Old bytes can still be read: everything that was ever stored is in `data/`, one folder per format version, and today's code must
//! read it to the same values. Nothing else is here; the tests are in `tests/golden/`.
