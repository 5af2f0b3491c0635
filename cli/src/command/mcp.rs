//! `atlasctl mcp`: connecting other programs that speak the Model Context Protocol.

mod check;
mod clients;
mod connect;
mod document;
mod envelope;
mod pin;
mod stdio;

pub use stdio::bridge;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Verbs of `atlasctl mcp`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Adds Atlas to the configuration of a client, after showing the change.
    Connect(connect::ConnectOptions),
    /// Removes Atlas from the configuration of a client.
    Disconnect(connect::DisconnectOptions),
    /// Asks the gateway in each version of the protocol.
    Check,
    /// Serves a client over standard input and output.
    Stdio,
    /// Makes an agent a tool of its own at /mcp, under its name and with its schema.
    Pin(pin::Pin),
    /// Ends that.
    Unpin(pin::Unpin),
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Connect(options) => connect::connect(context, options),
        Verb::Disconnect(options) => connect::disconnect(context, options),
        Verb::Check => check::run(context).await,
        Verb::Stdio => stdio::run(context).await,
        Verb::Pin(options) => pin::pin(context, options).await,
        Verb::Unpin(options) => pin::unpin(context, options).await,
    }
}
