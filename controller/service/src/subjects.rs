//! What the service hands on to subjects that are crates of their own.

mod bases;
mod conversations;
mod events;
mod identity;
mod jobs;
mod library;
mod lines;
mod platform;
mod records;
mod registry;
mod trail;
mod upkeep;
mod vault;
