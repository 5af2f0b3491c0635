//! Who has seen a job end, at any controller, can read all that follows from it, at every other controller: the job, its
//! result, its trace, its cost, its place in lists and in the statistics. Also at a controller whose state came as a snapshot.

use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use futures::stream::{self, StreamExt};
use serde_json::{Value, json};

use crate::Agent;
use crate::api::Api;
use crate::members::{Member, get, token, voters};
use crate::patience::{LONG, eventually_async};
use crate::program::program;
use crate::trio::{NAMES, leader, register, worker};

const ECHO: Agent<'static> = Agent {
    name: "echo",
    version: "1.0.0",
    contract: "",
    script: "sed 's/.*\"number\": *\\([0-9]*\\).*/{\"echoed\": \\1}/'",
};

/// Jobs that are waited for, in all parts of the test.
const JOBS: usize = 400;
/// Jobs at the same time.
const CONCURRENT: usize = 8;

/// Clients that keep their connections, because a new one for each of the many reads would cost more than the reads.
struct Clients<'m> {
    members: [&'m Member; 3],
    http: reqwest::Client,
    /// How many jobs that ended before each controller counts at least.
    before: [usize; 3],
    /// Jobs whose end was seen.
    ended: AtomicUsize,
}

impl<'m> Clients<'m> {
    async fn new(members: &'m [Member; 3]) -> Self {
        let http = reqwest::Client::builder().no_proxy().timeout(LONG).build().expect("a client");
        let (members, ended) = (members.each_ref(), AtomicUsize::new(0));
        let mut clients = Self { members, http, before: [0; 3], ended };
        for (place, member) in members.iter().enumerate() {
            clients.before[place] = completed(&clients.get(member, "/api/metrics").await["agents"]["echo"]);
        }
        clients
    }

    async fn ask(&self, request: reqwest::RequestBuilder, what: &str) -> Value {
        let answer = request.send().await.unwrap_or_else(|error| panic!("{what}: {error}"));
        let answer = answer.error_for_status().unwrap_or_else(|error| panic!("{what}: {error}"));
        answer.json().await.expect("JSON")
    }

    async fn get(&self, member: &Member, path: &str) -> Value {
        self.ask(self.http.get(format!("http://{}{path}", member.http)), &format!("{path} at {}", member.name)).await
    }

    /// Runs one job: submitted at one controller, waited for at a second one, read at all three at once.
    async fn check(&self, number: usize) {
        let places = [0, 1, 2].map(|place| (number + place) % 3);
        let [writer, waiter, other] = places.map(|place| self.members[place]);
        let submission = json!({"agent": "echo", "input": {"number": number}});
        let request = self.http.post(format!("http://{}/api/jobs", writer.http)).json(&submission);
        let id = self.ask(request, "a submission").await["id"].as_str().expect("an id").to_owned();
        let waited = self.get(waiter, &format!("/api/jobs/{id}/wait?timeout=60&view=full")).await;
        assert_eq!(waited["status"], json!("completed"), "{waited}");
        // Each job whose end was seen before is counted at the controllers that are asked now.
        let known = self.ended.fetch_add(1, Ordering::SeqCst) + 1;
        for place in [places[2], places[1], places[0]] {
            let reader = self.members[place];
            let at = format!("{id} at {}, {number}", reader.name);
            let job = self.get(reader, &format!("/api/jobs/{id}?view=full")).await;
            assert_eq!(
                (&job["status"], &job["output_data"]),
                (&json!("completed"), &json!({"echoed": number})),
                "{at}"
            );
            assert_eq!(job["cost"], waited["cost"], "{at}");
            let trace = self.get(reader, &format!("/api/traces/{id}")).await;
            assert_eq!((&trace["job_id"], &trace["status"]), (&json!(id), &json!("completed")), "{at}");
            let counted = completed(&self.get(reader, "/api/metrics/echo").await);
            let least = self.before[place] + known;
            assert!(counted >= least, "{at}: {counted} of at least {least} ended jobs are counted");
        }
        let newest = self.get(other, "/api/jobs?status=completed&agent=echo&limit=100").await;
        assert!(newest.as_array().expect("jobs").iter().any(|job| job["id"] == json!(id)), "{id} is not listed");
    }

    /// Checks jobs with these numbers, several at a time.
    async fn check_all(&self, numbers: std::ops::Range<usize>) {
        stream::iter(numbers.clone()).for_each_concurrent(CONCURRENT, |number| self.check(number)).await;
        // Each job was counted once, also by a controller that was not there when it ended, and all show the same.
        eventually_async("the three count alike", async || {
            let mut shown = join_all(self.members.map(|member| self.get(member, "/api/metrics/echo"))).await;
            // It changes with the time of the question.
            shown.iter_mut().for_each(|metrics| metrics["throughput_per_min"] = Value::Null);
            if shown.iter().all(|metrics| *metrics == shown[0] && completed(metrics) == numbers.end) {
                Ok(())
            } else {
                Err(format!("{} ended, {shown:#?}", numbers.end))
            }
        })
        .await;
    }
}

/// None are completed where no end was seen.
fn completed(metrics: &Value) -> usize {
    let count = metrics["jobs_by_status"]["completed"].as_u64().unwrap_or_default();
    usize::try_from(count).expect("a count")
}

/// Three voters that keep so little log that one that was away gets a snapshot.
async fn start(folder: &Path) -> [Member; 3] {
    let prepared = |name| {
        let mut member = Member::prepared(folder, name);
        member.runs_program(program("atlas-controller"), &["--snapshot-log", "64KiB"]);
        member
    };
    let [mut first, mut second, mut third] = NAMES.map(prepared);
    first.restart_with(&[]);
    register(&first, folder, &ECHO).await;
    for member in [&mut second, &mut third] {
        member.restart_with(&["--join", &first.peers.to_string(), "--token", &token(&first).await]);
    }
    voters(&third, &NAMES).await;
    [first, second, third]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_saw_a_job_end_reads_all_that_follows_from_it_everywhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut members = start(folder.path()).await;
    let _worker = worker(folder.path(), "w1", &[&members[0], &members[1], &members[2]]);
    Clients::new(&members).await.check_all(0..JOBS / 2).await;

    let away = (leader(&members).await + 1) % 3;
    members[away].kill();
    let there = [(away + 1) % 3, (away + 2) % 3].map(|place| &members[place]);
    // When the second snapshot is taken, the log before the first one is dropped.
    for _ in 0..2 {
        let known = there.map(|member| snapshot(folder.path(), member));
        eventually_async("both take a snapshot", async || {
            fail_some(there[0]).await;
            let found = there.map(|member| snapshot(folder.path(), member));
            if found.iter().zip(&known).all(|(found, known)| found != known) {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        })
        .await;
    }
    members[away].restart();
    eventually_async("it answers", async || get(&members[away], "/api/jobs?limit=1").await).await;
    assert!(members[away].said("received a snapshot"), "it got the whole log: nothing was missed");
    // Just after that, its own history lacks what it missed.
    Clients::new(&members).await.check_all(JOBS / 2..JOBS).await;
}

/// Submits jobs that fail at once, because nobody is their agent. Their inputs are large, because a snapshot is due
/// when the log since the last one is twice its size: with small ones that takes thousands of jobs.
async fn fail_some(member: &Member) {
    let api = Api::new(&member.http.to_string());
    let input = json!({"padding": "x".repeat(16 << 10)});
    join_all((0..CONCURRENT).map(|_| api.submit("nobody", input.clone()))).await;
}

/// The name of the latest snapshot that a controller has.
fn snapshot(folder: &Path, member: &Member) -> Option<OsString> {
    let found = std::fs::read_dir(folder.join(member.name).join("raft/snapshots")).into_iter().flatten().flatten();
    let paths = found.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|kind| kind == "snap"));
    paths.filter_map(|path| path.file_name().map(OsString::from)).max()
}
