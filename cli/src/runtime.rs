//! The runtimes of commands.

use crate::exit::Exit;
use crate::failure::Failure;

/// Runs a client command on a single-threaded runtime.
pub(crate) fn block_on<F: Future<Output = Result<Exit, Failure>>>(command: F) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| no_runtime(&error))?.block_on(command)
}

/// Runs a command that may start a temporary cluster in this process; Ctrl-C ends both.
pub(crate) fn beside_a_trial<F: Future<Output = Result<Exit, Failure>>>(command: F) -> Result<Exit, Failure> {
    atlas_dev::runtime().map_err(|error| no_runtime(&error))?.block_on(command)
}

fn no_runtime(error: &std::io::Error) -> Failure {
    Failure::new("E0104", Exit::Short, format!("the async runtime could not be started: {error}"))
}
