//! `atlasctl job events`.

use atlas_api::types::{Job, JobChange};
use clap::ValueEnum;
use serde_json::Value;

use crate::answers;
use crate::command::chain_run;
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::ending::waits;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// A change of a job. The name of a value is the word that this program prints; if the API uses a different word, it is
/// the alias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Happening {
    #[value(alias = "submitted")]
    Accepted,
    #[value(alias = "granted")]
    Leased,
    Started,
    Lost,
    Woken,
    Resolved,
    Cancelling,
    Ended,
}

impl Happening {
    /// Parses the printed word or the API's word.
    pub(crate) fn of(word: &str) -> Option<Self> {
        Self::from_str(word, false).ok()
    }

    /// The word that this program prints.
    fn word(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Options of `atlasctl job events`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Id of a job or of a run of a chain, or a unique prefix of it, also as printed by -o name.
    #[arg(value_name = "ID", value_parser = names::ran)]
    id: String,
    /// Stream new lines until the job has ended; for scripts with -o jsonl, because json and yaml come at the end.
    #[arg(short, long)]
    follow: bool,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let (id, follow) = (options.id.as_str(), options.follow);
    match (chain_run::is_one(id), follow) {
        (false, _) => of_job(context, id, follow).await,
        (true, false) => chain_run::each_job(context, id, async |job| of_job(context, job, false).await).await,
        (true, true) => {
            let each = async |_: &str, job: &str| of_job(context, job, true).await.map(drop);
            let client = context.client()?;
            context.as_one(true, chain_run::follow_jobs(&client, id, each)).await.map(|_| Exit::Done)
        }
    }
}

async fn of_job(context: &Context, id: &str, follow: bool) -> Result<Exit, Failure> {
    let client = context.client()?;
    let mut query = vec![("view", "full")];
    if !follow {
        query.push(("follow", "false"));
    }
    let path = ["api", "jobs", id, "events"];
    let events = client.events(&path, &query, |frame| {
        let value: Value = serde_json::from_str(&frame.data).map_err(Failure::answer)?;
        let event: JobChange = answers::read(&value)?;
        let names = vec![format!("job/{}", event.job.id)];
        context.show(&Shown { text: line(&event), value, names })?;
        Ok(true)
    });
    context.as_one(false, events).await?;
    Ok(Exit::Done)
}

/// `12:01:07.205  +1 ms   leased     laptop, attempt 1`; a completed job also has a line for its output.
///
/// Empty for the change to `running` of a job that failed without a lease: the API sends this event for
/// compatibility, but no node had the job.
pub(crate) fn line(event: &JobChange) -> String {
    let job = &event.job;
    let since = match event.timestamp - job.created_at {
        since if since <= 0.0 => "+0".to_owned(),
        since => format!("+{}", words::milliseconds(since * 1000.0)),
    };
    let line = |what: &str, detail: &str| {
        format!("{}  {since:<9}  {what:<11}  {detail}", words::time_of_day(event.timestamp)).trim_end().to_owned()
            + "\n"
    };
    let what = if event.change.is_empty() { &event.new_status } else { &event.change };
    let Some(happening) = Happening::of(what) else { return line(what, &waits(job)) };
    let detail = match happening {
        Happening::Accepted => {
            // A key that begins with `~` was made by a door, not by a client.
            match &job.request_id {
                key if key.is_empty() || key.starts_with('~') => format!("log {}", job.log),
                key => format!("log {}, idempotency key {key}", job.log),
            }
        }
        Happening::Leased if job.node.is_empty() => return String::new(),
        Happening::Leased => format!("{}, attempt {}", job.node, job.attempt),
        Happening::Started => format!("attempt {}", job.attempts()),
        Happening::Ended => {
            let output = job.output_data.as_ref().filter(|_| job.status == "completed").map(|output| {
                line("output", &format!("{}, contract ok", words::bytes(output.to_string().len() as u64)))
            });
            return output.unwrap_or_default() + &line(&job.status, &how(job));
        }
        Happening::Lost if job.reason == "lost" => "the lease was lost; the job is queued again".to_owned(),
        Happening::Lost | Happening::Woken | Happening::Resolved | Happening::Cancelling => waits(job),
    };
    line(&happening.word(), &detail)
}

/// Details of a job's end: its times, its error or its node.
fn how(job: &Job) -> String {
    let ran = format!("ran {}", words::milliseconds(job.execution_ms));
    let start = if job.warm { "warm".to_owned() } else { format!("cold start {}", words::milliseconds(job.warmup_ms)) };
    match (job.status.as_str(), job.node.is_empty()) {
        ("completed", _) => format!("{start}, {ran}"),
        (_, _) if !job.error_text().is_empty() => job.error_text(),
        (_, true) => "before it ran".to_owned(),
        (_, false) => format!("on {}", job.node),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn each_happening_has_one_word_and_that_of_the_api() {
        let words = |word| Happening::of(word).map(Happening::word);
        assert_eq!((words("leased"), words("granted")), (Some("leased".to_owned()), Some("leased".to_owned())));
        assert_eq!(words("submitted"), Some("accepted".to_owned()));
        assert_eq!(words("completed"), None);
    }

    #[test]
    fn events_are_told_in_lines() {
        let job = Job { node: "w1".to_owned(), attempt: 1, created_at: 10.0, ..Job::default() };
        let event = |change: &str, new_status: &str, status: &str| JobChange {
            change: change.to_owned(),
            new_status: new_status.to_owned(),
            timestamp: 10.0,
            job: Job { status: status.to_owned(), error: "no luck".to_owned(), ..job.clone() },
            ..JobChange::default()
        };
        let all = [
            event("submitted", "pending", "pending"),
            event("granted", "running", "running"),
            JobChange { job: Job { reason: "lost".to_owned(), ..job.clone() }, ..event("lost", "pending", "pending") },
            event("ended", "failed", "failed"),
            // An older server sends events without `change`.
            event("", "running", "running"),
        ];
        expect![[r#"
            00:00:10.000  +0         accepted     log 0
            00:00:10.000  +0         leased       w1, attempt 1
            00:00:10.000  +0         lost         the lease was lost; the job is queued again
            00:00:10.000  +0         failed       no luck
            00:00:10.000  +0         running      running
        "#]]
        .assert_eq(&all.iter().map(line).collect::<String>());
    }

    #[test]
    fn a_job_that_was_never_leased_shows_no_lease() {
        let event = |change: &str, status: &str| JobChange {
            change: change.to_owned(),
            new_status: status.to_owned(),
            job: Job { status: status.to_owned(), error: "no such agent".to_owned(), ..Job::default() },
            ..JobChange::default()
        };
        let all = [event("submitted", "pending"), event("granted", "running"), event("ended", "failed")];
        expect![[r#"
            00:00:00.000  +0         accepted     log 0
            00:00:00.000  +0         failed       no such agent
        "#]]
        .assert_eq(&all.iter().map(line).collect::<String>());
    }
}
