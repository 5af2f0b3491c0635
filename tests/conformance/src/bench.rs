//! Resources that all rows share: the mock agents, the programs, the bundled agents.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::agents::{self, Prepared};
use crate::program::{Programs, build};
use crate::result::Stop;
use crate::workplace::Workplace;

/// Resources that all rows share.
#[derive(Debug)]
pub struct Bench {
    mocks: PathBuf,
    programs: OnceLock<Result<Programs, String>>,
    bundled: OnceLock<Result<Vec<Prepared>, String>>,
    workplace: OnceLock<Result<Workplace, String>>,
}

impl Bench {
    /// `mocks` is the folder with the programs of the mock agents.
    pub fn new(mocks: PathBuf) -> Self {
        Self { mocks, programs: OnceLock::new(), bundled: OnceLock::new(), workplace: OnceLock::new() }
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
}
