//! Builders for tests. What they make is valid as it is, and a test says only what it is about:
//! `agent("echo").with_effects(Effects::Once).registered()`, `job(1).of("echo").submitted()`, `node("n1").with_places(2).registered()`.
//!
//! Fields that no builder sets are set by a struct update: `Job { warm: true, ..job(1).pending() }`. The crate knows the types alone, so every
//! crate above them can use it in its tests.

mod agent;
mod job;
mod node;

use atlas_types::{AgentPin, Command, Digest, Namespace, Origin, Request, Version};

pub use agent::{AgentBuilder, agent, spec};
pub use job::{JobBuilder, job};
pub use node::{NodeBuilder, node};

/// The version of agents that name none.
pub const VERSION: Version = Version { major: 1, minor: 0, patch: 0 };

/// A digest of one byte, repeated.
pub const fn digest(byte: u8) -> Digest {
    Digest([byte; 32])
}

/// The pin of [`VERSION`] with a digest.
pub const fn pin(digest: Digest) -> AgentPin {
    AgentPin { version: VERSION, digest }
}

/// A request by the cluster itself, in the default namespace.
pub fn request(command: Command) -> Request {
    Request { origin: Origin::duty(Namespace::default_namespace()), command }
}
