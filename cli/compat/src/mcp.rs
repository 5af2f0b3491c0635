//! `atlas mcp`: the skills, the tools of the platform and, if asked for, the agents of a folder, for clients of MCP.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use atlas_cli::Client;
use atlas_dev::{CompatibleMcp, Ports, Token};
use serde_json::Value;

use super::answer::{Answer, Refusal, print};
use super::server::{self, Folders};

/// Options of `atlas mcp`.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    folders: Folders,
    /// Serve HTTP instead of standard input and output.
    #[arg(long)]
    serve: bool,
    /// Address for HTTP.
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    host: String,
    /// Port for HTTP; 0 selects a free port.
    #[arg(long, default_value_t = 8400)]
    port: u16,
    /// Bearer token that HTTP clients must send.
    #[arg(long, env = "ATLAS_AUTH_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    auth_token: Option<String>,
    /// Offer each agent as a tool as well.
    #[arg(long)]
    all_agents: bool,
}

pub(super) fn run(options: &Options) -> Answer {
    let runtime = atlas_dev::runtime().map_err(|error| Refusal::new(format!("Error: {error}")))?;
    let done = runtime.block_on(serve(options));
    // Standard input may be blocked in a thread that nothing ends.
    runtime.shutdown_background();
    done.map(|()| String::new())
}

async fn serve(options: &Options) -> Result<(), Refusal> {
    let ports = Ports::choose(0).map_err(|error| server::refused(&error))?;
    let mut cluster = atlas_dev::Options::new(ports);
    cluster.node = Some("local".to_owned());
    cluster.hardware_checks = false;
    let listen = match options.serve {
        true => SocketAddr::new(host(&options.host)?, options.port),
        false => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
    };
    let token = options.auth_token.as_deref().filter(|_| options.serve).and_then(Token::new);
    let all_agents = options.all_agents;
    cluster.compatible = Some(CompatibleMcp { listen: Some(listen), token, pool: false, all_agents });
    let (cluster, served) = options.folders.serve(cluster).await?;
    let address = cluster.compatible_mcp().unwrap_or(listen);
    let done = if options.serve {
        let line =
            format!("Atlas MCP server on http://{address}/mcp ({} skills, {} agents)\n", served.skills, served.agents);
        let printed = print(&line);
        tokio::select! {
            () = server::interrupted(), if printed.is_ok() => printed,
            reason = cluster.failed() => Err(Refusal::new(format!("Error: {reason}"))),
        }
    } else {
        let client = Client::new(&format!("http://{address}")).map_err(|failure| server::told(&failure));
        match client {
            Ok(client) => tokio::select! {
                done = atlas_cli::mcp_bridge(client, &note) => done.map_err(|failure| server::told(&failure)),
                () = server::interrupted() => Ok(()),
            },
            Err(refusal) => Err(refusal),
        }
    };
    cluster.shutdown().await;
    done
}

/// What a person should read goes to stderr: stdout has the protocol.
fn note(text: &str) {
    super::folder::warn("atlas.mcp", text);
}

/// An address to listen on.
pub(super) fn host(text: &str) -> Result<IpAddr, Refusal> {
    let text = if text == "localhost" { "127.0.0.1" } else { text };
    text.parse().map_err(|_| Refusal::new(format!("Error: --host is an IP address, not {}", Value::from(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_addresses() {
        assert_eq!(host("localhost"), Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        assert!(host("example.org").is_err());
    }
}
