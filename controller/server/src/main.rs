//! The program `atlas-controller`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use atlas_controller::{Controller, StartError, command, load};
use atlas_env::{Env, Heap};

fn main() -> ExitCode {
    atlas_env::no_huge_pages();
    atlas_env::know_start_memory(Heap { keep_nothing: atlas_heap::keep_nothing, give_back: atlas_heap::give_back });
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            #[expect(clippy::print_stderr, reason = "the log may not be set up yet, and a filter may hide errors")]
            {
                if is_damage(&error) {
                    eprintln!("error[{DAMAGED}]: {error:#}\n{REPLACE}");
                } else {
                    eprintln!("error: {error:#}");
                }
            }
            ExitCode::FAILURE
        }
    }
}

/// The error code for damaged files.
const DAMAGED: &str = "E0120";

/// The hint for damaged files. The page of the code says more.
const REPLACE: &str = "stop using this data directory. With other controllers: remove this member, empty the directory and let it join again. Alone: restore a backup, or continue without the lost data (atlasctl explain-error E0120)";

fn is_damage(error: &anyhow::Error) -> bool {
    error.downcast_ref::<StartError>().is_some_and(StartError::is_damage)
}

/// Bytes of log and snapshots from which on a start keeps free memory for a while: it needs it again for each entry,
/// and both threads that load a state stop while a page is given back.
const LARGE_STATE: u64 = 64 << 20;

/// Whether this start has little to load.
fn starts_small(env: &Env, data_dir: &Path) -> bool {
    let folders = ["log", "snapshots"].map(|folder| data_dir.join("raft").join(folder));
    // A folder that cannot be read is reported by the start itself.
    let files = folders.iter().filter_map(|folder| env.files.list(folder).ok()).flatten();
    let loaded = files.filter(|file| file.extension().is_some_and(|kind| kind == "seg" || kind == "snap"));
    loaded.filter_map(|file| env.files.size(&file).ok().flatten()).sum::<u64>() < LARGE_STATE
}

fn run() -> anyhow::Result<()> {
    atlas_env::no_core_dumps()?;
    let matches = command().get_matches();
    let loaded = load(&matches)?;
    if matches.get_flag("print-config") {
        #[expect(clippy::print_stdout, reason = "this is what was asked for")]
        {
            print!("{}", loaded.print());
        }
        return Ok(());
    }
    if matches.get_flag("check-config") {
        return Ok(());
    }
    let env = Env::system();
    if starts_small(&env, &loaded.options.data_dir) {
        env.keep_no_free_memory();
    }
    let lines = loaded.options.otlp.as_ref().and_then(|otlp| otlp.logs(&env));
    atlas_telemetry::start_log_with(&loaded.options.log, lines.map(|lines| Box::new(lines) as atlas_telemetry::Sink))?;
    // The leader loop and the log use their own thread and need a core for it. With one more thread here, two threads
    // on one core would wake each other for every frame.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads((cores - 1).max(1))
        .thread_stack_size(atlas_controller::STACK_BYTES)
        .enable_all()
        .build()
        .context("could not start the async runtime")?;
    runtime.block_on(async {
        // A program that reads the ready line may stop the controller at once.
        let mut stop = std::pin::pin!(asked_to_stop());
        let controller = tokio::select! {
            controller = Controller::start(loaded.options, env.clone()) => controller?,
            () = &mut stop => return Ok(()),
        };
        drop(env.free_start_memory());
        let failure = tokio::select! {
            reason = controller.failed() => Some(reason),
            () = &mut stop => None,
        };
        controller.shutdown().await;
        match failure {
            Some(reason) => Err(anyhow::anyhow!("the controller cannot continue: {reason}")),
            None => Ok(()),
        }
    })
}

/// Completes on the first SIGTERM or SIGINT after the call.
fn asked_to_stop() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let handlers = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    async move {
        match handlers {
            (Ok(mut terminate), Ok(mut interrupt)) => {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            }
            // Without handlers, a signal ends the process by default, and the log recovers.
            _ => std::future::pending().await,
        }
    }
}
