//! A job that must not run twice: its worker is killed after the start, and only an operator can let it run again. Each
//! attempt adds a line to a file, which shows the number of runs (B.7).

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use atlas_package::pack;
use serde_json::{Value, json};

use crate::api::Api;
use crate::pair::{Controller, worker};
use crate::patience::eventually_async;
use crate::{Agent, LONG, eventually, program, write_agent};

/// Adds a line to the file in its input, then waits until the gate exists.
const SCRIPT: &str = r#"input=$(cat)
field() { printf '%s' "$input" | sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p"; }
echo ran >> "$(field ran)"
while [ ! -e "$(field gate)" ]; do sleep 0.05; done
printf '{"sent": true}'"#;

const ONCE: Agent<'static> = Agent {
    name: "once",
    version: "1.0.0",
    contract: "  effects: once\n  retry: { max_retries: 2, backoff_base: 0 }\n  output: { schema: { type: object, required: [sent] } }",
    script: SCRIPT,
};

const ONE_ATTEMPT: Agent<'static> =
    Agent { name: "one-attempt", version: "1.0.0", contract: "  max_attempts: 1", script: SCRIPT };

/// A controller with both agents, and the folder for the files of its jobs.
struct Rig {
    folder: tempfile::TempDir,
    controller: Controller,
    api: Api,
}

impl Rig {
    async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let controller = Controller::start_with(folder.path(), &["--worker-session-ttl", "2s"]);
        let api = Api::new(&controller.http.to_string());
        for agent in [&ONCE, &ONE_ATTEMPT] {
            write_agent(folder.path(), agent);
            api.register(pack(&folder.path().join(agent.name)).expect("a package").bytes).await;
        }
        Self { folder, controller, api }
    }

    /// Submits a job and kills its worker while the job runs; returns the job's id and its runs.
    async fn lose(&self, agent: &str) -> (String, Runs) {
        let runs = Runs { folder: self.folder.path().join(format!("runs-{agent}-{}", rand_word())) };
        fs::create_dir(&runs.folder).expect("a folder");
        let first = worker(self.folder.path(), &self.controller);
        let id = self.api.submit(agent, json!({"ran": runs.ran(), "gate": runs.gate()})).await;
        eventually("the attempt has begun", LONG, || (runs.count() == 1).then_some(()));
        first.kill();
        (id, runs)
    }

    async fn in_doubt(&self, id: &str) -> Value {
        eventually_async("the job is in doubt", async || {
            let job = self.api.job(id).await;
            if job["reason"] == "in_doubt" { Ok(job) } else { Err(job.to_string()) }
        })
        .await
    }

    fn atlasctl(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(program("atlasctl"));
        command.args(arguments).env("ATLAS_SERVER", format!("http://{}", self.controller.http)).env("NO_COLOR", "1");
        command.output().expect("atlasctl runs")
    }
}

fn rand_word() -> u128 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    u128::from(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The side effects of one job's attempts.
struct Runs {
    folder: std::path::PathBuf,
}

impl Runs {
    fn ran(&self) -> std::path::PathBuf {
        self.folder.join("ran")
    }

    fn gate(&self) -> std::path::PathBuf {
        self.folder.join("gate")
    }

    fn count(&self) -> usize {
        count(&self.ran())
    }
}

fn count(path: &Path) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

#[tokio::test]
async fn a_job_in_doubt_runs_again_only_if_a_person_says_so() {
    let rig = Rig::start().await;
    let (id, runs) = rig.lose("once").await;
    let job = rig.in_doubt(&id).await;
    assert_eq!((&job["status"], &job["attempt"]), (&json!("pending"), &json!(1)), "{job}");
    // Another worker is idle, but the job does not run there.
    let second = worker(rig.folder.path(), &rig.controller);
    let waited = rig.atlasctl(&["job", "wait", &id, "--timeout", "3s"]);
    let told = String::from_utf8_lossy(&waited.stderr);
    assert_eq!(waited.status.code(), Some(13), "{told}");
    assert!(told.contains(&format!("atlasctl job resolve {id} --run-again")), "{told}");
    assert_eq!(runs.count(), 1);

    let resolved = rig.atlasctl(&["job", "resolve", &id, "--run-again"]);
    assert_eq!(resolved.status.code(), Some(0), "{}", String::from_utf8_lossy(&resolved.stderr));
    eventually("the second attempt has begun", LONG, || (runs.count() == 2).then_some(()));
    fs::write(runs.gate(), "").expect("opened");
    let job = rig.api.wait(&id).await;
    assert_eq!((&job["status"], &job["attempt"]), (&json!("completed"), &json!(2)), "{job}");
    assert_eq!(runs.count(), 2);
    let (status, code, _) = rig.api.try_post(&format!("/api/jobs/{id}/resolve"), json!({"run_again": true})).await;
    assert_eq!((status, code.as_str()), (409, "E3011"));
    drop(second);
}

#[tokio::test]
async fn a_job_in_doubt_ends_as_a_person_found_out() {
    let rig = Rig::start().await;
    let (id, runs) = rig.lose("once").await;
    rig.in_doubt(&id).await;
    let path = format!("/api/jobs/{id}/resolve");
    let (status, code, body) = rig.api.try_post(&path, json!({"output": {"sent_": true}})).await;
    assert_eq!((status, code.as_str()), (400, "E1111"), "{body}");
    let (status, code, _) = rig.api.try_post(&path, json!({"run_again": true, "error": "both"})).await;
    assert_eq!((status, code.as_str()), (400, "E1104"));
    rig.api.post(&path, json!({"output": {"sent": true}})).await;
    let job = rig.api.wait(&id).await;
    assert_eq!((&job["status"], &job["output_data"]), (&json!("completed"), &json!({"sent": true})), "{job}");

    // A job that an operator resolves as failed is not retried, although the contract has retries.
    let (other, others) = rig.lose("once").await;
    rig.in_doubt(&other).await;
    let resolved = rig.atlasctl(&["job", "resolve", &other, "--error", "nothing was sent"]);
    assert_eq!(resolved.status.code(), Some(0), "{}", String::from_utf8_lossy(&resolved.stderr));
    let job = rig.api.wait(&other).await;
    assert_eq!((&job["status"], &job["error"]), (&json!("failed"), &json!("nothing was sent")), "{job}");
    let second = worker(rig.folder.path(), &rig.controller);
    let jobs = rig.api.get("/api/jobs?status=pending").await;
    assert_eq!(jobs, json!([]));
    assert_eq!((runs.count(), others.count()), (1, 1));
    drop(second);
}

#[tokio::test]
async fn a_job_with_one_attempt_never_starts_twice() {
    let rig = Rig::start().await;
    let (id, runs) = rig.lose("one-attempt").await;
    let second = worker(rig.folder.path(), &rig.controller);
    let job = rig.api.wait(&id).await;
    assert_eq!((&job["status"], &job["attempt"]), (&json!("failed"), &json!(1)), "{job}");
    assert_eq!(job["error"], "lease lost 1 times");
    assert_eq!(runs.count(), 1);
    drop(second);
}
