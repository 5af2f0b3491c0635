//! Logins with a browser: what the logins of models and of MCP servers share.

mod loopback;

use std::process::{Command, Stdio};

use atlas_env::Env;
use serde_json::Value;

pub(crate) use self::loopback::Loopback;
use crate::client::Client;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Refuses to send codes of logins where others could read them.
pub(crate) fn private(client: &Client) -> Result<(), Failure> {
    if client.is_private() {
        return Ok(());
    }
    let text = "codes of logins are sent over TLS or loopback only";
    let failure = Failure::new("E2104", Exit::Denied, text.to_owned());
    Err(failure.with_next("run it on the machine of a controller: --server http://127.0.0.1:8000"))
}

/// What the verifier and the state of a login are made of.
pub(crate) fn random(env: &Env) -> [u8; 64] {
    let mut random = [0; 64];
    for part in random.chunks_mut(8) {
        part.copy_from_slice(&env.entropy.u64().to_le_bytes());
    }
    random
}

/// Prints the address of the login page and opens it, if it may and can.
pub(crate) fn open(context: &Context, no_browser: bool, url: &str) {
    context.must_know(&format!("log in at: {url}"));
    if no_browser {
        return;
    }
    let own = std::env::var_os("BROWSER").filter(|program| !program.is_empty());
    let usual = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(own.unwrap_or_else(|| usual.into()));
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Without a browser the person opens the address.
    if command.spawn().is_err() {
        context.note("no browser could be opened: open the address yourself");
    }
}

/// How long a login counts, for people.
pub(crate) fn validity(value: &Value, context: &Context) -> String {
    match (value["renewable"].as_bool(), value["expires_at"].as_f64()) {
        (Some(true), _) => "the cluster renews the access token".to_owned(),
        (_, Some(end)) => format!("until {}", context.look.when(end)),
        (_, None) => "the access token does not expire".to_owned(),
    }
}
