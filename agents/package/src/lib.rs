//! Agent packages: discover, pack, unpack.
