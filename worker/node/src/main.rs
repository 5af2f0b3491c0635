//! `atlas-worker`: runs agents on this machine for a cluster.
#![expect(clippy::print_stdout, reason = "--print-config writes its result to standard output")]

use std::process::ExitCode;

use anyhow::Context;
use atlas_env::Env;
use atlas_otlp::{Config, Otlp};
use atlas_worker::{Configuration, ConfigurationError, StartError, Worker};
use clap::FromArgMatches as _;
use tokio::signal::unix::{SignalKind, signal};

fn main() -> ExitCode {
    atlas_worker::run_if_asked();
    if let Some(code) = atlas_bundled::run_if_asked() {
        return code;
    }
    atlas_env::know_start_memory(atlas_env::Heap::SYSTEM);
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            match code_of(&error) {
                Some(code) => tracing::error!(code, "{error:#}"),
                None => tracing::error!("{error:#}"),
            }
            ExitCode::FAILURE
        }
    }
}

/// The code of the page in the reference that explains an error.
fn code_of(error: &anyhow::Error) -> Option<&'static str> {
    let configuration = error.downcast_ref::<ConfigurationError>().and_then(ConfigurationError::code);
    configuration.or_else(|| error.downcast_ref::<StartError>().and_then(StartError::code))
}

fn run() -> anyhow::Result<()> {
    let without_cores = atlas_env::no_core_dumps();
    let matches = Configuration::command_line().get_matches();
    let configuration = Configuration::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let filter = configuration.log.clone().unwrap_or_else(|| "info".to_owned());
    let env = Env::system();
    // Refusals are logged, so the log starts before they are returned.
    let prepared = prepare(configuration);
    let lines = prepared.as_ref().ok().and_then(|(_, otlp)| otlp.as_ref()?.logs(&env));
    atlas_telemetry::start_log_with(&filter, lines.map(|lines| Box::new(lines) as atlas_telemetry::Sink))?;
    without_cores?;
    let (configuration, otlp) = prepared?;
    if configuration.print_config {
        print!("{}", configuration.to_toml());
        return Ok(());
    }
    let join_only = configuration.join_only;
    let options = configuration.options()?;
    if configuration.check_config {
        return Ok(());
    }
    // The stream, the pump and the slots share one thread. Slow work runs on the pool for blocking work.
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("could not start the async runtime")?
        .block_on(async {
            let running = otlp.map(|otlp| otlp.start(&atlas_telemetry::Metrics::new(), &env));
            let ended = if join_only {
                atlas_worker::join(&options, &env).await.map_err(Into::into)
            } else {
                serve(options, env).await
            };
            if let Some(running) = running {
                running.stop().await;
            }
            ended
        })
}

/// Reads the file, and where log lines are sent. Traces and metrics are those of the controllers.
fn prepare(configuration: Configuration) -> anyhow::Result<(Configuration, Option<Otlp>)> {
    let configuration = configuration.with_file()?;
    let otlp = Config::read("atlas-worker", configuration.otlp.as_deref(), |name| std::env::var(name).ok())?;
    let otlp = otlp.map(|config| Otlp::new(config.only_logs()));
    Ok((configuration, otlp))
}

async fn serve(options: atlas_worker::Options, env: Env) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("could not listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("could not listen for SIGINT")?;
    let worker = Worker::start(options, env.clone()).await?;
    drop(env.free_start_memory());
    tracing::info!("{}", atlas_inventory::line(worker.node(), worker.inventory()));
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        // Running attempts are killed with this process.
        reason = worker.failed() => anyhow::bail!("the worker cannot continue: {reason}"),
    }
    tracing::info!("stopping: waiting for running attempts");
    tokio::select! {
        () = worker.shutdown() => {}
        // On a second signal the process ends at once, and running attempts are killed with it.
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
