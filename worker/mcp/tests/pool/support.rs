//! Pools and targets of the tests.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use atlas_env::Env;
use atlas_http::Trust;
use atlas_mcp::{Launcher, Network, Pool, Program, RunningProgram, ServerSpec, Surroundings, Target};
use atlas_types::SecretText;
use serde_json::{Map, Value};

/// Starts programs without containment.
struct Plain;

#[async_trait]
impl Launcher for Plain {
    async fn launch(&self, program: Program<'_>) -> Result<RunningProgram, String> {
        let mut command = tokio::process::Command::new(program.command);
        command.args(program.args.iter().map(SecretText::expose)).kill_on_drop(true);
        command.envs(program.env.iter().map(|(name, value)| (name, value.expose())));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("no pipes".to_owned());
        };
        Ok(RunningProgram {
            stdout: Box::new(stdout),
            stdin: Box::new(stdin),
            keeper: Box::new(child),
            complaint: Box::new(|| Some("no more".to_owned())),
        })
    }
}

pub(crate) fn pool() -> Pool {
    trusting(Trust::default())
}

/// A pool that accepts the certificates of more servers.
pub(crate) fn trusting(trust: Trust) -> Pool {
    Pool::new(Env::system(), Arc::new(Plain), Network::new(trust, |_| None))
}

pub(crate) fn target(spec: &ServerSpec, bearer: Option<&str>) -> Target {
    let bearer = bearer.map(SecretText::new);
    let secret = |name: &str| (name == "KEY").then(|| SecretText::new("own"));
    let around = Surroundings { secret: &secret, variable: &|_| None, bearer: bearer.as_ref() };
    Target::resolve("default", "strict", spec, &around).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn arguments(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

pub(crate) const LIMIT: Duration = Duration::from_secs(20);
