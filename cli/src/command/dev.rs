//! `atlasctl dev`.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// d
#[derive(Debug, clap::Args)]
pub(crate) struct Options {}

pub(crate) fn run(_context: &Context, _options: &Options) -> Result<Exit, Failure> {
    Ok(Exit::Done)
}
