//! A temporary cluster in this process, on which agents are tested before they are deployed.
//!
//! It is the cluster of `atlasctl dev` with temporary data: the same contract checks, providers and limits apply as for
//! a deployed agent. Only hardware requirements are not checked. Tests of durable agents are repeated with lost attempts.

mod replays;

use std::path::{Path, PathBuf};
use std::time::Duration;

use atlas_api::types::Job;
use atlas_contract::fixture::{Fixture, Mismatch};
use atlas_contract::{EVAL_FILE, Eval};
use atlas_dev::{Cluster, Ports};
use atlas_env::Env;
use atlas_package::Package;
use serde_json::{Value, json};

use crate::answers;
use crate::client::Client;
use crate::ending;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::words::could_not;

pub(crate) use replays::told as told_of_replays;

/// Maximum size of a fixture.
const FIXTURE_BYTES_MAX: u64 = 16 << 20;

/// A test of an agent, with the path of its file.
pub(crate) struct Case {
    /// The path of the file.
    pub(crate) path: PathBuf,
    /// The contents of the file.
    pub(crate) fixture: Fixture,
}

/// The result of a test.
pub(crate) struct TestResult {
    /// Duration of the job, from submission to its end.
    pub(crate) took: Duration,
    /// The difference from the expected result; none if the test passed.
    pub(crate) mismatch: Option<Mismatch>,
    /// How often the test was repeated with a lost attempt.
    pub(crate) replays: usize,
}

/// How tests are run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rules {
    /// Tests of durable agents are repeated with a lost attempt after each step. Each attempt has a process of its own then.
    pub(crate) loses_attempts: bool,
}

/// The tests of the agent in `folder`: `tests/*.yaml` and `tests/*.yml`, sorted by name.
pub(crate) fn cases(folder: &Path) -> Result<Vec<Case>, Failure> {
    let dir = folder.join("tests");
    let entries = match std::fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(could_not("read", &dir, &error)),
    };
    let files = entries.flatten().map(|entry| entry.path());
    let is_fixture = |path: &PathBuf| {
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        !hidden && path.extension().is_some_and(|end| end == "yaml" || end == "yml") && path.is_file()
    };
    let mut files: Vec<PathBuf> = files.filter(is_fixture).collect();
    files.sort();
    files.into_iter().map(read).collect()
}

fn read(path: PathBuf) -> Result<Case, Failure> {
    let text = atlas_env::read_bytes(&path, FIXTURE_BYTES_MAX).map_err(|error| could_not("read", &path, &error))?;
    match Fixture::parse(&text) {
        Ok(fixture) => Ok(Case { path, fixture }),
        Err(error) => {
            let message = format!("the fixture \"{}\" is not valid: {}", path.display(), atlas_env::chain(&error));
            let failure = Failure::new("E1122", Exit::Invalid, message);
            Err(failure.with_next("see the format: atlasctl docs fixtures"))
        }
    }
}

/// A running trial cluster.
pub(crate) struct Trial {
    cluster: Cluster,
    client: Client,
    env: Env,
    rules: Rules,
}

impl Trial {
    /// Starts a trial cluster on free ports; needs the runtime of `atlas_dev`.
    pub(crate) async fn start(rules: Rules) -> Result<Self, Failure> {
        let env = Env::system();
        let failed = |error: &(dyn std::error::Error + 'static)| {
            Failure::new(
                "E0109",
                Exit::Short,
                format!("could not run agents on this machine: {}", atlas_env::chain(error)),
            )
            .with_next("deploy without tests: atlasctl deploy --no-test DIR")
        };
        let ports = Ports::choose(0).map_err(|error| failed(&error))?;
        let options = atlas_dev::Options {
            node: Some("trial".to_owned()),
            hardware_checks: false,
            // What a process keeps from one attempt to the next would hide that a lost one had it.
            warm_pool_size: rules.loses_attempts.then_some(0),
            ..atlas_dev::Options::new(ports)
        };
        let cluster = Cluster::start(options, env.clone()).await.map_err(|error| failed(&error))?;
        let client = Client::new(&format!("http://{}", cluster.http()))?;
        Ok(Self { cluster, client, env, rules })
    }

    /// Registers an agent, so that it can be tested or called by other agents.
    pub(crate) async fn register(&self, package: &Package) -> Result<(), Failure> {
        self.client.register(package.bytes.clone(), true).await.map(|_| ())
    }

    /// Runs one test of an agent.
    pub(crate) async fn check(
        &self,
        package: &Package,
        case: &Case,
        evals: Option<&Eval>,
    ) -> Result<TestResult, Failure> {
        let (name, version) = (package.contract.name.as_str(), package.contract.version.to_string());
        let body = json!({"agent": name, "version": version, "input": case.fixture.input});
        let since = self.env.clock.monotonic();
        let answer = self.client.post(&["api", "jobs"], &[], &body).await?;
        let id = answer["id"].as_str().ok_or_else(|| Failure::answer("a submission is answered with an id"))?;
        let job: Job = answers::read(&ending::wait(&self.client, id, None, None).await?)?;
        let took = self.env.clock.monotonic().saturating_sub(since);
        let mismatch = differing(case, evals, &job);
        if mismatch.is_some() || !self.rules.loses_attempts || !package.contract.durable {
            return Ok(TestResult { took, mismatch, replays: 0 });
        }
        let replayed = self.replay(&job, case, evals).await?;
        Ok(TestResult { took, mismatch: replayed.mismatch, replays: replayed.count })
    }

    /// Shuts the cluster down in order.
    pub(crate) async fn end(self) {
        self.cluster.shutdown().await;
    }
}

/// How the end of a job differs from what its test expects.
fn differing(case: &Case, evals: Option<&Eval>, job: &Job) -> Option<Mismatch> {
    let output = job.output_data.as_ref().unwrap_or(&Value::Null);
    let ended = if job.status == "completed" { Ok(output) } else { Err(job.error.as_str()) };
    let checked = evals.filter(|_| ended.is_ok()).and_then(|evals| unchecked(evals, output));
    case.fixture.check(ended).err().or(checked)
}

/// The checks that an output does not pass.
fn unchecked(evals: &Eval, output: &Value) -> Option<Mismatch> {
    let results = output.as_object().map(|output| evals.run(output)).unwrap_or_default();
    let failed = results.iter().filter(|result| !result.passed);
    let failed: Vec<String> = failed.map(|result| format!("{}: {}", result.name, result.message)).collect();
    let expected = format!("an output that passes the checks of {EVAL_FILE}");
    (!failed.is_empty())
        .then(|| Mismatch { expected, actual: format!("{output}\n      checks    {}", failed.join("; ")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixtures_are_read_in_order_and_a_wrong_one_is_named() {
        let dir = tempfile::tempdir().expect("a folder");
        assert!(cases(dir.path()).expect("none").is_empty());
        let tests = dir.path().join("tests");
        std::fs::create_dir(&tests).expect("made");
        for name in ["b.yaml", "a.yaml", ".hidden.yaml", "notes.md", "c.yml"] {
            std::fs::write(tests.join(name), "output: {}").expect("written");
        }
        let names: Vec<PathBuf> = cases(dir.path()).expect("two").into_iter().map(|case| case.path).collect();
        assert_eq!(names, ["a.yaml", "b.yaml", "c.yml"].map(|name| tests.join(name)));
        std::fs::write(tests.join("d.yml"), "inptu: {}").expect("written");
        let failure = cases(dir.path()).err().expect("a wrong one");
        assert_eq!(failure.code.as_deref(), Some("E1122"));
        assert!(failure.message.contains("d.yml"), "{failure}");
    }
}
