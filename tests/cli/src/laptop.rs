//! A development cluster on a laptop, used by most pages.

use std::path::Path;

use atlas_cluster_tests::{Agent, Dev, write_agent};
use tempfile::TempDir;

use crate::session::Session;

/// `atlasctl dev --ephemeral` in its own folder. Dropping this stops the cluster first, and then removes the folder.
pub(crate) struct Laptop {
    dev: Dev,
    folder: TempDir,
}

impl Laptop {
    /// Starts a cluster with these agents in the folder `agents`.
    pub(crate) fn with(agents: &[&Agent<'_>]) -> Self {
        Self::started(agents, &[])
    }

    /// Like [`Self::with`], with additional options of the controller and the worker.
    pub(crate) fn started(agents: &[&Agent<'_>], settings: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for agent in agents {
            write_agent(&folder.path().join("agents"), agent);
        }
        let options: &[&str] = if agents.is_empty() { &[] } else { &["--agents", "./agents"] };
        let dev = Dev::start(folder.path(), ["--ephemeral"].iter().chain(options).chain(settings));
        Self { dev, folder }
    }

    /// The folder in which commands run.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The address of the cluster.
    pub(crate) fn server(&self) -> &str {
        self.dev.server()
    }

    /// Starts a page of commands for this cluster.
    pub(crate) fn session(&self, title: &str) -> Session<'_> {
        Session::new(title, self.folder(), Some(self.server()))
    }
}
