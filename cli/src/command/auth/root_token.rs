//! `atlasctl auth root-token`.

use std::path::PathBuf;

use atlas_access::{ROOT, token};
use atlas_env::Env;
use serde_json::json;

use super::write_token;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::words::shell;

/// Options of `atlasctl auth root-token`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// The new file, which only you can read.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let entropy = Env::system().entropy;
    write_token(&options.file, &token(ROOT, std::array::from_fn(|_| entropy.u64())))?;
    let path = options.file.display().to_string();
    context.show(&Shown { value: json!({"file": path}), text: format!("{path}\n"), names: Vec::new() })?;
    let file = shell(&path);
    context.next(&format!("next: atlas-controller --auth tokens --root-token-file {file}"));
    Ok(Exit::Done)
}
