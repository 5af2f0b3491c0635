//! Delivers events to the receivers that `webhook` objects name: one HTTP request per event, in order, at least once.
//!
//! Only the leader delivers. Each webhook has a task and a connection of its own, so a slow receiver delays no other. How far
//! a webhook got is part of the status of its object, which is written about once a second; a new leader continues from
//! there and repeats what was delivered since. Repeated deliveries have the same id.
//!
//! * [`status`](self) is the pure part: what a success, a failure and a lost event mean for a webhook;
//! * a `Delivery` reads the events of one webhook and sends them;
//! * [`Webhooks`] starts and stops deliveries as objects change, and writes their statuses;
//! * [`Exchange`] sends single requests by the same rules, for other parts of a controller.
//!
//! This crate decides nothing about the state and keeps no events: it reads them from `atlas-service`.

mod addresses;
mod backoff;
mod client;
mod delivery;
mod dispatcher;
mod message;
mod secrets;
mod signature;
mod status;
#[cfg(test)]
mod tests;

pub use client::{Exchange, HttpAnswer, OutgoingBody};
pub use dispatcher::{Parts, Webhooks};
pub use secrets::{Environment, Secret, Secrets};
