//! Starts the programs of MCP servers. Each is a process tree of its own, which is killed with its connection and with the worker.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use atlas_env::Env;
use atlas_mcp::{Launcher, Program, RunningProgram};
use atlas_sandbox::Access;

use crate::cgroup::Limits;
use crate::piped::{self, Piped, Start};
use crate::process::Supervisor;
use crate::provider::Settings;
use crate::sandbox::{Confined, Unconfined};

/// Starts programs on this machine.
pub(crate) struct Programs {
    env: Env,
    supervisor: Arc<Supervisor>,
    settings: Arc<Settings>,
    /// Where the directories of programs are whose definition names none.
    directory: PathBuf,
}

impl Programs {
    pub(crate) fn new(env: Env, supervisor: Arc<Supervisor>, settings: Arc<Settings>, data_dir: &Path) -> Self {
        Self { env, supervisor, settings, directory: data_dir.join("mcp") }
    }
}

#[async_trait]
impl Launcher for Programs {
    async fn launch(&self, program: Program<'_>) -> Result<RunningProgram, String> {
        let mut environment = self.settings.environment.clone();
        environment
            .extend(program.env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value.expose()))));
        // Restricted rights are those of the agents that use the server.
        let access =
            program.rights.map(serde_json::from_str::<Access>).transpose().map_err(|error| error.to_string())?;
        let (settings, server) = (Arc::clone(&self.settings), program.server.to_owned());
        let confine = move |directory: &Path| -> Result<Option<Confined>, Unconfined> {
            let name = format!("the MCP server {server}");
            access.map(|access| settings.sandboxes.with(access, directory, &name)).transpose()
        };
        let start = Start {
            program: program.command.into(),
            arguments: program.args.iter().map(|argument| OsString::from(argument.expose())).collect(),
            environment,
            directory: program.directory.map_or_else(|| self.directory.clone(), PathBuf::from),
            is_own: program.directory.is_none(),
            is_home: false,
            limits: Limits::default(),
            confine: Box::new(confine),
        };
        let started = piped::start(&self.env, &self.supervisor, "start mcp server", start).await;
        let Piped { stdin, stdout, keeper } = started.map_err(|error| error.to_string())?;
        Ok(RunningProgram {
            stdout: Box::new(stdout),
            stdin: Box::new(stdin),
            complaint: Box::new(keeper.complaints()),
            keeper: Box::new(keeper),
        })
    }
}
