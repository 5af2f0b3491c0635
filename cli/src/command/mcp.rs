//! `atlasctl mcp`: connecting other programs that speak the Model Context Protocol, and the MCP servers that agents use.

mod check;
mod clients;
mod connect;
mod document;
mod envelope;
mod import;
mod login;
mod pin;
pub(super) mod server;
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
    /// Adds an MCP server whose tools agents can use, or those of a file mcp.json.
    Add(Box<server::add::Options>),
    /// Lists MCP servers.
    List(server::ListOfServers),
    /// Shows one MCP server as apply reads it.
    Show(server::Names),
    /// Asks an MCP server for its tools, from a worker.
    Test(server::test::TestOptions),
    /// Accepts the tools of an MCP server as they are now, and offers only these from then on.
    AcceptChanges(server::test::Options),
    /// Logs in at an MCP server that wants access tokens. The cluster keeps and renews them.
    Login(login::Options),
    /// Forgets the tokens of an MCP server.
    Logout(login::Logout),
    /// Removes an MCP server.
    Remove(server::Names),
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Connect(options) => connect::connect(context, options),
        Verb::Disconnect(options) => connect::disconnect(context, options),
        Verb::Check => check::run(context).await,
        Verb::Stdio => stdio::run(context).await,
        Verb::Pin(options) => pin::pin(context, options).await,
        Verb::Unpin(options) => pin::unpin(context, options).await,
        Verb::Add(options) => server::add::run(context, options).await,
        Verb::List(options) => server::list(context, options).await,
        Verb::Show(options) => server::show(context, options).await,
        Verb::Test(options) => server::test::run(context, options).await,
        Verb::AcceptChanges(options) => server::accept::run(context, options).await,
        Verb::Login(options) => login::run(context, options).await,
        Verb::Logout(options) => login::logout(context, options).await,
        Verb::Remove(options) => server::remove(context, options).await,
    }
}
