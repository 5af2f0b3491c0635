//! A development cluster on a laptop, used by most pages.

use std::path::Path;

use atlas_cluster_tests::{Agent, Dev, write_agent};
use tempfile::TempDir;

use crate::session::Session;

/// `atlasctl dev --ephemeral` in a folder of its own. It ends with this, and the folder goes after it.
pub(crate) struct Laptop {
    dev: Dev,
    folder: TempDir,
}

impl Laptop {
    /// Starts one that has these agents in `agents`.
    pub(crate) fn with(agents: &[&Agent<'_>]) -> Self {
        Self::started(agents, &[])
    }

    /// The same, with these options of the controller and the worker as well.
    pub(crate) fn started(agents: &[&Agent<'_>], settings: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for agent in agents {
            write_agent(&folder.path().join("agents"), agent);
        }
        let options: &[&str] = if agents.is_empty() { &[] } else { &["--agents", "./agents"] };
        let dev = Dev::start(folder.path(), ["--ephemeral"].iter().chain(options).chain(settings));
        Self { dev, folder }
    }

    /// Where commands run.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its address.
    pub(crate) fn server(&self) -> &str {
        self.dev.server()
    }

    /// A page of commands to it.
    pub(crate) fn session(&self, title: &str) -> Session<'_> {
        Session::new(title, self.folder(), Some(self.server()))
    }
}
