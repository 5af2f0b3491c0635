//! `atlasctl agent-exec`: the bundled agents that are written in Rust, as programs that a worker starts.
//!
//! Hidden: a person runs them through the cluster. The protocol is that of any exec agent: one JSON document in, one out.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Which agent.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Its name.
    #[arg(value_parser = ["wordcount"])]
    name: String,
}

pub(crate) fn run(context: &Context, _options: &Options) -> Result<Exit, Failure> {
    let mut document = Vec::new();
    let read = std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut document);
    read.map_err(|error| Failure::usage(format!("could not read the input: {error}")))?;
    let output = atlas_bundled::wordcount(&document);
    let output = output.map_err(|error| Failure::new("E1102", Exit::Invalid, error.to_string()))?;
    context.print(&format!("{output}\n"))?;
    Ok(Exit::Done)
}
