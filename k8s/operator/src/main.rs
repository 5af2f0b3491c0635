//! The program `atlas-operator`.

use std::process::ExitCode;

use atlas_env::Env;
use atlas_operator::{Options, run};

fn main() -> ExitCode {
    let options = Options::read();
    match start(&options) {
        Ok(()) => ExitCode::SUCCESS,
        #[expect(clippy::print_stderr, reason = "the log may not be set up yet, and a filter may hide errors")]
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(options: &Options) -> anyhow::Result<()> {
    atlas_env::no_core_dumps()?;
    atlas_telemetry::start_log(&options.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let stop = asked_to_stop()?;
        run(options, Env::system(), stop).await
    })
}

/// Completes on the first SIGTERM or SIGINT after the call.
fn asked_to_stop() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
