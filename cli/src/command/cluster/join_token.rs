//! `atlasctl cluster join-token`.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::words;

/// Options of `atlasctl cluster join-token`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Lifetime of the token, at most an hour.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = words::parse_seconds)]
    expires: Duration,
    /// Write the token to a new file that only you can read, instead of printing it.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    let body = json!({"expires_s": options.expires.as_secs()});
    let mut value = client.post(&["api", "cluster", "join-tokens"], &[], &body).await?;
    let token = value["token"].as_str().ok_or_else(|| Failure::answer("a token was expected"))?.to_owned();
    let mut text = format!("{token}\n");
    if let Some(path) = &options.to {
        keep(path, &text).map_err(|error| words::could_not("write", path, &error))?;
        // The token must not appear in logs; the output contains only the path of the file.
        value["token"] = json!(null);
        text = format!("{}\n", path.display());
    }
    context.note(&format!("valid for one controller, for {}", words::span(options.expires)));
    context.show(&Shown { value, text, names: Vec::new() })?;
    let file = options.to.as_deref().map_or_else(|| "FILE".into(), |path| words::shell(&path.to_string_lossy()));
    context.next(&format!("next, on the new machine: atlas-controller --join HOST:7402 --token-file {file}"));
    Ok(Exit::Done)
}

/// Writes a secret to a new file that only the owner can read.
fn keep(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
