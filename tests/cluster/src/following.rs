//! Clients follow jobs while the leader is killed: in server-sent events, WebSockets and logs, no event is lost and
//! none is repeated (B.32). Streams at other controllers do not break.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;

use atlas_env::Task;
use serde_json::{Value, json};

use crate::Agent;
use crate::api::Api;
use crate::members::{Member, get};
use crate::patience::eventually_async;
use crate::stream::{Frame, Received, Whole, follow, hear, is_end, open};
use crate::trio::{leader, trio, worker};

/// Logs a line every 50 ms until its gate exists; its output is the number of lines.
const SAYS: Agent<'static> = Agent {
    name: "says",
    version: "1.0.0",
    contract: "",
    script: r#"gate=$(sed -n 's/.*"gate": *"\([^"]*\)".*/\1/p')
n=0
while [ ! -e "$gate" ]; do n=$((n+1)); echo "line $n" >&2; sleep 0.05; done
printf '{"lines": %d}' "$n""#,
};
/// Number of jobs that are followed at the same time.
const JOBS: usize = 3;
/// Number of killed leaders.
const ROUNDS: usize = 2;
/// Number of lines that show that the logs continue.
const SOME: usize = 10;

/// Two followers of one stream: one at a controller that keeps running, one that starts at the controller that is
/// killed.
struct Pair([Task<Received>; 2]);

impl Pair {
    fn start(path: &str, [lives, dies, other]: [SocketAddr; 3], whole: Whole) -> Self {
        Self([vec![lives], vec![dies, other]].map(|at| follow(at, path.to_owned(), whole)))
    }

    /// The frames of both followers, when their streams are complete.
    async fn end(self) -> [Vec<Frame>; 2] {
        let [lives, dies] = self.0;
        let (lives, dies) = (lives.join().await.expect("no panic"), dies.join().await.expect("no panic"));
        assert_eq!(lives.breaks, 0, "a stream at a controller that lives broke");
        assert!(dies.breaks > 0, "the stream at the dead one did not break");
        [lives.frames, dies.frames]
    }
}

/// All followers of one job.
struct Followed {
    id: String,
    events: Pair,
    lines: Pair,
    socket: Task<Vec<Value>>,
}

impl Followed {
    fn start(id: String, at: [SocketAddr; 3]) -> Self {
        let path = |what: &str| format!("/api/jobs/{id}/{what}");
        let events = Pair::start(
            &path("events?view=full"),
            at,
            Whole::AtItsEnd(|told| told.last().is_some_and(|last| is_end(&last.data))),
        );
        let lines = Pair::start(&path("logs"), at, Whole::AtItsEnd(|_| true));
        let socket = hear(open(at[0], &path("events?view=full")), |_| false);
        Self { id, events, lines, socket }
    }

    /// Waits for the end, and compares the events of all followers; `all` are the events of this job in the stream of
    /// all jobs.
    async fn check(self, api: &Api, all: &[Change]) {
        let Self { id, events, lines, socket } = self;
        assert_eq!(all.first().map(|change| change.change.as_str()), Some("submitted"), "{id}: {all:?}");
        let follows = |pair: &[Change]| pair[0].new == pair[1].old;
        assert!(all.windows(2).all(follows), "{id}: {all:?}");
        assert_eq!(all.last().map(|change| change.new.as_str()), Some("completed"), "{id}: {all:?}");
        // A follower that starts later gets a summary of the earlier events: the submission and the changes of status.
        let short = |told: &[Change]| -> Vec<Change> {
            let kept = told.iter().filter(|change| change.change == "submitted" || change.old != change.new).cloned();
            // In the summary, the submission has the current attempt of the job.
            kept.map(|change| Change {
                attempt: if change.change == "submitted" { 0 } else { change.attempt },
                ..change
            })
            .collect()
        };
        for told in events.end().await {
            let told = changes(told.iter().map(|frame| &frame.data));
            assert_eq!(short(&told), short(all), "{id}: an event was lost or doubled");
        }
        // A WebSocket sends only the events after it was opened.
        let heard = changes(&socket.join().await.expect("no panic"));
        assert!(!heard.is_empty() && all.ends_with(&heard), "{id}: {heard:?} of {all:?}");
        let job = api.job(&id).await;
        for told in lines.end().await {
            let said = said(&told);
            let last = said.last_key_value().expect("it said something");
            assert_eq!(json!([last.0, last.1]), json!([job["attempt"], job["output_data"]["lines"]]), "{id}: {job}");
        }
    }
}

/// A change of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    change: String,
    old: String,
    new: String,
    attempt: u64,
}

fn changes<'v>(told: impl IntoIterator<Item = &'v Value>) -> Vec<Change> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let change = |data: &Value| Change {
        change: text(&data["change"]),
        old: text(&data["old_status"]),
        new: text(&data["new_status"]),
        attempt: data["job"]["attempt"].as_u64().expect("a number"),
    };
    told.into_iter().map(change).collect()
}

/// The number of lines of each attempt; checks that each line arrived once and in order.
fn said(frames: &[Frame]) -> BTreeMap<u64, u64> {
    let mut said = BTreeMap::new();
    for Frame { id, data } in frames {
        let (attempt, number) =
            (data["attempt"].as_u64().expect("a number"), data["number"].as_u64().expect("a number"));
        let before = said.insert(attempt, number).unwrap_or(0);
        assert_eq!((number, &data["text"]), (before + 1, &json!(format!("line {number}"))), "{id}: {data}");
        assert_eq!(*id, format!("{attempt}.{number}"));
        assert_eq!(
            said.last_key_value().map(|(attempt, _)| *attempt),
            Some(attempt),
            "{id} came after a later attempt"
        );
    }
    said
}

/// Waits until a controller has [`SOME`] more lines of each job than `before`; returns the new counts.
async fn goes_on(member: &Member, jobs: &[String], before: &[usize]) -> Vec<usize> {
    let mut counts = Vec::new();
    for (id, before) in jobs.iter().zip(before) {
        let count = eventually_async("a job says something", async || {
            let lines = get(member, &format!("/api/jobs/{id}/logs")).await?;
            let count = lines.as_array().map_or(0, Vec::len);
            if count >= before + SOME { Ok(count) } else { Err(format!("{count} lines")) }
        });
        counts.push(count.await);
    }
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_follows_a_job_over_the_death_of_the_leader_misses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut members = trio(folder.path(), &[&SAYS]).await;
    let _worker = worker(folder.path(), "w1", &members.each_ref());
    let mut submitted = BTreeSet::new();
    for round in 0..ROUNDS {
        let dies = leader(&members).await;
        let (lives, other) = ((dies + 1) % 3, (dies + 2) % 3);
        let at @ [_, _, besides] = [lives, dies, other].map(|place| members[place].http);
        let before = submitted.clone();
        let ends = move |told: &[Value]| {
            let of_this_round =
                |data: &&Value| is_end(data) && !before.contains(data["job_id"].as_str().unwrap_or_default());
            told.iter().filter(of_this_round).count() == JOBS
        };
        let heard = hear(open(at[0], "/ws?view=full"), ends);
        let all = Pair::start("/api/events?view=full&after=0", at, Whole::Ends(JOBS * (round + 1)));
        let gate = folder.path().join(format!("gate-{round}"));
        let mut jobs = Vec::new();
        for _ in 0..JOBS {
            jobs.push(Api::new(&besides.to_string()).submit("says", json!({"gate": gate})).await);
        }
        submitted.extend(jobs.iter().cloned());
        let followed: Vec<_> = jobs.iter().map(|id| Followed::start(id.clone(), at)).collect();
        let before = goes_on(&members[other], &jobs, &[0; JOBS]).await;
        members[dies].kill();
        goes_on(&members[lives], &jobs, &before).await;
        fs::write(&gate, "").expect("opened");
        let heard = heard.join().await.expect("no panic");
        let [all, taken_up] = all.end().await;
        let ids = |told: &[Frame]| told.iter().map(|frame| frame.id.parse().expect("a number")).collect::<Vec<u64>>();
        assert!(ids(&all).is_sorted_by(|a, b| a < b), "{:?}", ids(&all));
        assert_eq!(ids(&all), ids(&taken_up), "taken up elsewhere, an event was lost or doubled");
        let api = Api::new(&at[0].to_string());
        for followed in followed {
            let of_it = |data: &&Value| data["job_id"] == json!(followed.id);
            let told = changes(all.iter().map(|frame| &frame.data).filter(of_it));
            assert_eq!(changes(heard.iter().filter(of_it)), told, "the socket for all jobs");
            followed.check(&api, &told).await;
        }
        members[dies].restart();
    }
}
