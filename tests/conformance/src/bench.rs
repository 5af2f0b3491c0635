//! Resources that all rows share: the mock agents, the programs, the bundled agents.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::agents::{self, Prepared};
use crate::cluster::Cluster;
use crate::program::{Programs, build};
use crate::result::Stop;
use crate::setup::Setup;
use crate::workplace::Workplace;

/// Resources that all rows share.
#[derive(Debug)]
pub struct Bench {
    mocks: PathBuf,
    programs: OnceLock<Result<Programs, String>>,
    bundled: OnceLock<Result<Vec<Prepared>, String>>,
    workplace: OnceLock<Result<Workplace, String>>,
    /// Stopped before its folder is removed.
    cluster: OnceLock<Result<Cluster, Stop>>,
    folder: OnceLock<Result<TempDir, String>>,
}

impl Bench {
    /// `mocks` is the folder with the programs of the mock agents.
    pub fn new(mocks: PathBuf) -> Self {
        Self {
            mocks,
            programs: OnceLock::new(),
            bundled: OnceLock::new(),
            workplace: OnceLock::new(),
            cluster: OnceLock::new(),
            folder: OnceLock::new(),
        }
    }

    pub(crate) fn mocks(&self) -> &Path {
        &self.mocks
    }

    /// The programs to start; the first row that needs them builds them.
    pub(crate) fn programs(&self) -> Result<&Programs, Stop> {
        self.programs.get_or_init(build).as_ref().map_err(|error| Stop::fail(error.clone()))
    }

    /// The packed bundled agents.
    pub(crate) fn bundled(&self) -> Result<&[Prepared], Stop> {
        let packed = self.bundled.get_or_init(agents::bundled);
        packed.as_deref().map_err(|error| Stop::fail(error.clone()))
    }

    /// The folder in which all rows of the command line run.
    pub(crate) fn workplace(&self) -> Result<&Workplace, Stop> {
        self.workplace.get_or_init(Workplace::new).as_ref().map_err(|error| Stop::fail(error.clone()))
    }

    /// The cluster that command lines ask; the first row that needs it starts it.
    pub(crate) fn cluster(&self) -> Result<&Cluster, Stop> {
        let start = || {
            let folder = self
                .folder
                .get_or_init(|| tempfile::tempdir().map_err(|error| format!("could not make a folder: {error}")));
            let folder = folder.as_ref().map_err(|error| Stop::fail(error.clone()))?;
            let cluster = Cluster::start(self.programs()?, &Setup::new(), folder.path())?;
            cluster.register(self.bundled()?)?;
            Ok(cluster)
        };
        self.cluster.get_or_init(start).as_ref().map_err(Stop::clone)
    }
}
