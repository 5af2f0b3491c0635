//! `atlasctl mcp login` and `atlasctl mcp logout`: MCP servers that want access tokens. The cluster finds the issuer, registers itself there,
//! exchanges the code for tokens, keeps and renews them; this program brings the code of the browser, and never has a token.

use std::time::Duration;

use atlas_env::Env;
use atlas_oauth::{Client, Login, Proof, ServerClient};
use serde::Deserialize;
use serde_json::{Value, json};

use super::server::KIND;
use crate::answers;
use crate::browser::{self, Loopback};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// Options of `atlasctl mcp login`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// The server's name.
    #[arg(value_parser = names::server)]
    name: String,
    /// Client that is registered at the issuer; without one, Atlas registers itself.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Secret of that client, as secret://NAME.
    #[arg(long, value_name = "REFERENCE", requires = "client_id")]
    client_secret: Option<String>,
    /// Scope to ask for besides those of the login before, instead of those that the server names; repeatable.
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// Port on this machine to which the browser comes back; defaults to a free one.
    #[arg(long, value_name = "PORT")]
    callback_port: Option<u16>,
    /// Print the address of the login page, and do not open a browser.
    #[arg(long)]
    no_browser: bool,
    /// Longest wait for the person.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = words::parse_duration)]
    timeout: Duration,
}

/// What the cluster says about the login page.
#[derive(Deserialize)]
struct Begun {
    issuer: String,
    authorize_url: String,
    client_id: String,
    scopes: Vec<String>,
    resource: String,
    /// Whether the answer of the login page names the issuer. Older controllers do not say so.
    #[serde(default)]
    names_issuer: bool,
}

impl Begun {
    /// The client as the login page sees it.
    fn client(self) -> ServerClient {
        ServerClient {
            server: String::new(),
            resource: self.resource,
            issuer: self.issuer,
            authorize_url: self.authorize_url,
            token_url: String::new(),
            scopes: self.scopes,
            client: Client { id: self.client_id, secret: None },
            basic: false,
        }
    }
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let (name, env) = (&options.name, Env::system());
    let client = context.client()?;
    browser::private(&client)?;
    let failed =
        |error: &dyn std::fmt::Display| Failure::new("E3207", Exit::Denied, format!("the login failed: {error}"));
    let path = ["api", "mcp-servers", name, "login"];
    let listener = Loopback::listen(&env, options.callback_port).await.map_err(|error| failed(&error))?;
    let scopes = (!options.scopes.is_empty()).then_some(&options.scopes);
    let body = json!({
        "step": "begin", "redirect_uri": listener.redirect_uri, "client_id": options.client_id,
        "client_secret": options.client_secret, "scopes": scopes,
    });
    let begun: Begun = answers::read(&client.post(&path, &[], &body).await?)?;
    let names_issuer = begun.names_issuer;
    let server = begun.client();
    let login = Login::begin(listener.redirect_uri.clone(), &browser::random(&env));
    let login = login.of_issuer(server.issuer.clone(), names_issuer);
    browser::open(context, options.no_browser, &login.url(&server.issuer()).unwrap_or_default());
    let code = tokio::select! {
        biased;
        code = listener.code(&login) => code.map_err(|error| failed(&error))?,
        () = env.clock.sleep(options.timeout) => {
            let within = words::brief_seconds(options.timeout.as_secs_f64());
            let text = format!("nobody logged in at MCP server \"{name}\" within {within}");
            return Err(Failure::new("E4004", Exit::WaitTimedOut, text));
        }
    };
    let Proof { code, verifier, state, redirect_uri } = login.proof(code);
    let body = json!({
        "step": "code", "code": code.expose(), "verifier": verifier.expose(), "state": state, "redirect_uri": redirect_uri,
    });
    let value = client.post(&path, &[], &body).await?;
    let text = format!("MCP server {name}   logged in   {}\n", browser::validity(&value, context));
    context.show(&Shown { value, text, names: vec![format!("{KIND}/{name}")] })?;
    Ok(Exit::Done)
}

/// A name.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Logout {
    /// The server's name.
    #[arg(value_parser = names::server)]
    name: String,
}

pub(super) async fn logout(context: &Context, options: &Logout) -> Result<Exit, Failure> {
    let name = &options.name;
    let value: Value = context.client()?.delete(&["api", "mcp-servers", name, "login"]).await?;
    let text = format!("MCP server {name}   logged out   the issuer may keep the login: end it there as well\n");
    context.show(&Shown { value, text, names: vec![format!("{KIND}/{name}")] })?;
    Ok(Exit::Done)
}
