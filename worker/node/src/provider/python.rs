//! Python agents.

use std::path::Path;
use std::sync::Arc;

use super::host::{HostProgram, HostStart};
use super::{Settings, StartError};
use crate::attempt::Work;
use crate::provider::{Control, Shared};

/// Starts the host of an agent.
pub(super) async fn start(
    work: &Arc<Work>,
    shared: &Shared,
    control: &mut Control<'_>,
) -> Result<HostProgram, StartError> {
    if !work.agent.directory.join("agent.py").is_file() {
        let agent = work.agent.contract.name.to_string();
        return Err(StartError::NoImplementation { agent, why: "the package has no agent.py".to_owned() });
    }
    HostProgram::start(find, work, shared, control).await
}

fn find(work: &Work, settings: &Settings) -> Result<HostStart, String> {
    let program = match work.agent.python.get() {
        Some(own) => &own.python,
        None => &settings.python.get().map_err(str::to_owned)?.program,
    };
    // An environment's interpreter is a link to that of the machine, which has the standard library.
    let linked = program.canonicalize().unwrap_or_else(|_| program.clone());
    Ok(HostStart {
        language: "Python",
        program: program.clone().into(),
        // The working directory is the package. `-P` keeps it from preceding the standard library while the host loads.
        arguments: ["-P", "-m", "atlas._host"].map(Into::into).into(),
        environment: vec![("PYTHONPATH".into(), settings.sdk.clone().into())],
        own: vec![settings.sdk.clone(), root_of(program).to_owned(), root_of(&linked).to_owned()],
    })
}

/// The folder with an interpreter's libraries: that above its folder `bin`.
pub(super) fn root_of(program: &Path) -> &Path {
    program.parent().and_then(Path::parent).unwrap_or(program)
}
