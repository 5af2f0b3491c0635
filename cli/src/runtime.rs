//! The runtimes of commands.

use std::pin::{Pin, pin};

use tokio::runtime::Runtime;

use crate::exit::Exit;
use crate::failure::Failure;

type Ended = Result<Exit, Failure>;

/// Runs a client command on a single-threaded runtime.
pub(crate) fn block_on(command: impl Future<Output = Ended>) -> Ended {
    on(tokio::runtime::Builder::new_current_thread().enable_all().build(), pin!(command))
}

/// Runs a command that may start a temporary cluster in this process; Ctrl-C ends both.
pub(crate) fn beside_a_trial(command: impl Future<Output = Ended>) -> Ended {
    on(atlas_dev::runtime(), pin!(command))
}

/// The code of the runtime is made once, not for each command.
fn on(runtime: std::io::Result<Runtime>, command: Pin<&mut dyn Future<Output = Ended>>) -> Ended {
    runtime.map_err(|error| no_runtime(&error))?.block_on(command)
}

fn no_runtime(error: &std::io::Error) -> Failure {
    Failure::new("E0104", Exit::Short, format!("the async runtime could not be started: {error}"))
}
