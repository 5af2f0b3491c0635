//! The agent that reads the sources of document bases ([ADR 86](../../../../docs/adr/0086-sources-of-document-bases.md)): pages, websites,
//! repositories, and what programs of the operator read. It hands documents to the controllers as it goes; a later attempt begins anew, and what
//! is there already changes nothing.

mod files;
mod git;
mod handing;
mod loading;
mod rules;
mod site;
mod size;
mod walk;
mod web;

use std::sync::Arc;

use atlas_http::Trust;
use atlas_pages::{COLLECT_COMMAND, Exemption, Loader, Source};
use atlas_types::{FailureKind, StreamKind};
use serde::Deserialize;
use serde_json::Map;
use serde_json::value::RawValue;
use tokio::sync::OnceCell;

use self::handing::{Controllers, Handing, Sums};
use self::loading::Programs;
use self::web::Web;
use super::platform::{Platform, Stopped};
use super::{Execution, stopped};
use crate::attempt::Work;
use crate::provider::{Control, Shared};

/// Why work is not done that was handed to another thread.
const STOPS: &str = "the worker stops";

/// What the operator permits those jobs.
#[derive(Debug, Default)]
pub(crate) struct Collection {
    pub(crate) trust: Trust,
    /// Servers that are not public.
    pub(crate) allowed: Arc<[Exemption]>,
    pub(crate) loaders: Vec<Loader>,
    /// Set once the program `git` is known to be new enough.
    pub(crate) git: OnceCell<()>,
}

/// The agent in its slot. It has no process of its own, and its slot ends with the job.
pub(crate) struct CollectAgent {
    shared: Shared,
}

/// The input of a job.
#[derive(Debug, Deserialize)]
struct Input {
    base: String,
    sources: Vec<String>,
}

/// Why the whole job ends. What is wrong with one source or one page does not end it.
#[derive(Debug)]
enum Fault {
    /// The controllers do not take the documents, for example because the base was deleted.
    Refused(String),
    /// This machine does not do what it must.
    Machine(String),
    Stopped,
}

impl From<Stopped> for Fault {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl CollectAgent {
    /// None if the job is of another agent.
    pub(super) fn of(work: &Work, shared: &Shared) -> Option<Self> {
        let is_own = work.agent.contract.provider.command == [COLLECT_COMMAND];
        is_own.then(|| Self { shared: shared.clone() })
    }

    pub(super) async fn execute(&mut self, work: &Arc<Work>, control: &mut Control<'_>) -> Execution {
        let (env, mailbox, limit) = (control.env, control.mailbox, work.assignment.execution_timeout);
        let end = tokio::select! {
            biased;
            () = stopped(mailbox) => return Execution::stopped(),
            end = self.collect(work, control) => end,
            () = env.clock.sleep(limit.as_duration()) => return Execution::timed_out(limit),
        };
        let failed = |kind, why: String| Execution::failed(kind, why);
        match end.map(|sums| serde_json::to_string(&sums).and_then(RawValue::from_string)) {
            Ok(Ok(output)) => Execution::Output { output, metadata: Map::new(), usable: false },
            Ok(Err(error)) => failed(FailureKind::Internal, error.to_string()),
            Err(Fault::Refused(why)) => failed(FailureKind::Agent, why),
            Err(Fault::Machine(why)) => failed(FailureKind::Internal, why),
            Err(Fault::Stopped) => Execution::stopped(),
        }
    }

    async fn collect(&self, work: &Arc<Work>, control: &mut Control<'_>) -> Result<Sums, Fault> {
        let Input { base, sources } =
            serde_json::from_slice(&work.input).map_err(|error| Fault::Refused(error.to_string()))?;
        let collection = &self.shared.collection;
        let web = Web::new(&self.shared.env, &collection.trust, &collection.allowed).map_err(Fault::Machine)?;
        let programs = Programs { shared: &self.shared, agent: &work.agent, loaders: &collection.loaders };
        let platform = Platform::of(work, &self.shared);
        let mut handing = Handing::new(&platform, &base);
        handing.check().await?;
        for source in &sources {
            if !handing.begin(source) {
                continue;
            }
            control.say(StreamKind::Log, "info", format!("reading {source}")).await;
            read(source, (&web, &programs), &mut handing).await?;
            handing.end().await?;
        }
        let sums = handing.finish(&sources).await?;
        for error in &sums.errors {
            control.say(StreamKind::Log, "warning", error.clone()).await;
        }
        Ok(sums)
    }
}

/// Reads one source.
async fn read<C: Controllers>(
    source: &str,
    (web, programs): (&Web, &Programs<'_>),
    handing: &mut Handing<'_, C>,
) -> Result<(), Fault> {
    match Source::read(source) {
        Ok(Source::Page(url)) => site::page(web, &url, programs, handing).await,
        Ok(Source::Site(url)) => site::crawl(web, &url, programs, handing).await,
        Ok(Source::Sitemap(url)) => site::listed(web, &url, programs, handing).await,
        Ok(Source::Git(repository)) => git::read(web, &repository, programs, handing).await,
        Ok(Source::Loader { name, resource }) => {
            programs.source((name.as_str(), resource.as_str()), source, handing).await
        }
        Err(unknown) => {
            handing.missing(source, &unknown.to_string());
            Ok(())
        }
    }
}
