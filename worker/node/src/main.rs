//! `atlas-worker`: runs agents on this machine for a cluster.
#![expect(clippy::print_stdout, reason = "--print-config writes its result to standard output")]

use std::process::ExitCode;

use anyhow::Context;
use atlas_env::Env;
use atlas_worker::{Configuration, Worker};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

fn main() -> ExitCode {
    atlas_worker::run_if_asked();
    if let Some(code) = atlas_bundled::run_if_asked() {
        return code;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let configuration = Configuration::parse();
    let filter = configuration.log.clone().unwrap_or_else(|| "info".to_owned());
    atlas_telemetry::start_log(&filter)?;
    let configuration = configuration.with_file()?;
    if configuration.print_config {
        print!("{}", configuration.to_toml());
        return Ok(());
    }
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
        .block_on(serve(options))
}

async fn serve(options: atlas_worker::Options) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("could not listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("could not listen for SIGINT")?;
    let worker = Worker::start(options, Env::system()).await?;
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
