//! The generated messages of `atlas.state.v1`.
#![expect(unreachable_pub, clippy::large_enum_variant, reason = "generated; the contracts have the sentences")]

include!(concat!(env!("OUT_DIR"), "/atlas.state.v1.rs"));
