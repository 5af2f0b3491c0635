//! Agents in JavaScript and TypeScript, which Node.js runs.

use std::sync::Arc;

use super::host::{HostProgram, HostStart};
use super::python::root_of;
use super::{Settings, StartError};
use crate::attempt::Work;
use crate::provider::{Control, Shared};
use crate::sdk;

/// Starts the host of an agent.
pub(super) async fn start(
    work: &Arc<Work>,
    shared: &Shared,
    control: &mut Control<'_>,
) -> Result<HostProgram, StartError> {
    HostProgram::start(find, work, shared, control).await
}

fn find(_work: &Work, settings: &Settings) -> Result<HostStart, String> {
    let program = &settings.nodejs.get().map_err(str::to_owned)?.program;
    let linked = program.canonicalize().unwrap_or_else(|_| program.clone());
    Ok(HostStart {
        language: "Node.js",
        program: program.clone().into(),
        arguments: vec![sdk::nodejs_host(&settings.sdk).into()],
        environment: Vec::new(),
        own: vec![settings.sdk.clone(), root_of(program).to_owned(), root_of(&linked).to_owned()],
    })
}
