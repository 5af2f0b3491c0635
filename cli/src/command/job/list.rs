//! `atlasctl job list`.

use std::collections::BTreeSet;

use atlas_api::types::Job;
use serde_json::Value;

use crate::answers;
use crate::client::Client;
use crate::command::job::pages::{PAGE, Pages};
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Column, Form, List, ListOptions, Look, column, members, rare, wide};
use crate::watch::{Watch, Watching};
use crate::words;

/// How many jobs are listed by default.
const LIMIT_DEFAULT: u32 = 50;
/// Maximum number of jobs that are searched for matching ones, unless `--all` is given.
const LOOKED_AT_MAX: usize = 10 * PAGE;

/// Options that select jobs.
#[derive(Debug, Clone, Default, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// Only jobs with this status.
    #[arg(long, value_parser = ["pending", "running", "completed", "failed", "cancelled"])]
    pub(crate) status: Option<String>,
    /// Only jobs of this agent.
    #[arg(long, value_parser = names::agent)]
    pub(crate) agent: Option<String>,
    /// Only jobs with this label; repeatable.
    #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = words::parse_label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Only jobs with these words in their error or labels.
    #[arg(long, value_name = "WORDS")]
    pub(crate) text: Option<String>,
    /// Only jobs submitted within this time.
    #[arg(long, value_name = "DURATION", value_parser = words::parse_duration)]
    pub(crate) since: Option<std::time::Duration>,
    #[command(flatten)]
    pub(crate) list: ListOptions,
}

impl Options {
    /// The same options, restricted to one status.
    pub(super) fn of_status(&self, status: &str) -> Self {
        Self { status: Some(status.to_owned()), ..self.clone() }
    }

    /// Whether a job matches all options, including those that the server does not evaluate.
    pub(super) fn admits(&self, value: &Value, job: &Job, now: f64) -> Result<bool, Failure> {
        let admitted = self.status.as_ref().is_none_or(|status| job.status == *status)
            && self.agent.as_ref().is_none_or(|agent| job.agent_name == *agent)
            && self.since.is_none_or(|since| job.created_at >= now - since.as_secs_f64())
            && self.labels.iter().all(|(key, wanted)| job.labels.get(key) == Some(wanted))
            && self.text.as_ref().is_none_or(|text| has_words(job, text));
        Ok(admitted && self.list.admits(value)?)
    }
}

/// Whether all words of a text are in the error or the labels of a job, as the server decides it.
fn has_words(job: &Job, text: &str) -> bool {
    let cut = |text: &str| -> Vec<String> {
        let words = text.split(|character: char| !character.is_alphanumeric());
        words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
    };
    let mut known = cut(&job.error_text());
    known.extend(job.labels.iter().flat_map(|(key, value)| [cut(key), cut(value)]).flatten());
    let wanted = cut(text);
    !wanted.is_empty() && wanted.iter().all(|word| known.contains(word))
}

/// Options of `atlasctl job list`.
#[derive(Debug, Default, clap::Args)]
#[group(skip)]
pub(crate) struct Listing {
    #[command(flatten)]
    pub(crate) which: Options,
    /// List all jobs; defaults to the newest 50, or with a filter, label or sort order the newest 1000 that match.
    #[arg(long, conflicts_with_all = ["limit", "watch"])]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) watching: Watching,
}

const LIST: List<'static, Job> =
    List { columns: &COLUMNS, members: members::JOB, name: |job| format!("job/{}", job.id) };

const COLUMNS: [Column<Job>; 13] = [
    column("JOB", "id", |job, _| job.id.clone()),
    column("AGENT", "agent_name", |job, _| job.agent()),
    column("STATUS", "status", |job, _| job.standing()),
    column("AGE", "created_at", |job, look| look.when(job.created_at)),
    column(
        "TOOK",
        "total_ms",
        |job, _| if job.is_terminal() { words::milliseconds(job.total_ms()) } else { String::new() },
    ),
    column("NODE", "node", |job, _| job.node.clone()),
    wide("PRIORITY", "priority", |job, _| job.priority.to_string()),
    wide("ATTEMPT", "attempt", attempt),
    wide("COST", "cost_usd", |job, _| job.cost()),
    wide("LABELS", "labels", |job, _| words::labels(&job.labels)),
    wide("BY", "principal", |job, _| job.principal.clone()),
    wide("ERROR", "error", |job, _| words::short(&job.error_text(), 500)),
    rare("TITLE", "title", |job, _| job.title.clone()),
];

/// The column is empty for a job that was never leased.
fn attempt(job: &Job, _: &Look) -> String {
    if job.attempt == 0 { String::new() } else { job.attempts() }
}

pub(crate) async fn run(context: &Context, options: &Listing) -> Result<Exit, Failure> {
    let (client, now, Listing { which, watching, all: whole }) = (context.client()?, context.look.now, options);
    if watching.watch {
        let first = async { Ok(Value::Array(fetch(&client, which, now).await?.jobs)) };
        let admits = |value: &Value, job: &Job| which.admits(value, job, now);
        return goes_on(context, &client, &which.list, first, admits, false).await;
    }
    if *whole {
        if all(context, &client, which, now).await? == 0 {
            none(context);
        }
        return Ok(Exit::Done);
    }
    let JobPage { jobs, beyond } = fetch(&client, which, now).await?;
    if context.list(Value::Array(jobs), &which.list, &LIST)? == 0 {
        none(context);
    }
    match beyond {
        Beyond::Nothing => {}
        Beyond::More => context.note("there are more jobs: atlasctl job list --limit N, or --all"),
        Beyond::NotLookedAt(count) => {
            context.note(&format!("only the newest {count} jobs were searched; search all: atlasctl job list --all"));
        }
    }
    Ok(Exit::Done)
}

fn none(context: &Context) {
    context.note("no jobs");
    context.next("next: atlasctl run AGENT key=value");
}

/// Lists one job, and lists it again after each change until the job has ended.
pub(crate) async fn watch(context: &Context, id: &str, options: &ListOptions) -> Result<Exit, Failure> {
    let client = context.client()?;
    // Resolve the full id first: a prefix could become ambiguous when another job is submitted.
    let Job { id, .. } = answers::read(&client.get(&["api", "jobs", id], &[("view", "full")]).await?)?;
    let first = async { Ok(Value::Array(vec![client.get(&["api", "jobs", &id], &[("view", "full")]).await?])) };
    goes_on(context, &client, options, first, |_, job| Ok(job.id == id), true).await
}

/// Prints the jobs that `first` returns, and then each job that `admits` accepts, after each of its events.
async fn goes_on(
    context: &Context,
    client: &Client,
    options: &ListOptions,
    first: impl Future<Output = Result<Value, Failure>>,
    admits: impl Fn(&Value, &Job) -> Result<bool, Failure>,
    until_ended: bool,
) -> Result<Exit, Failure> {
    let mut watch = Watch::new(context, &LIST, options)?;
    // The stream is opened before the list is read, so that no event is missed in between.
    let mut events = client.open(&["api", "events"], &[("view", "full")]).await?;
    let Value::Array(values) = first.await? else { return Err(Failure::answer("a list is expected")) };
    let mut known = Known::default();
    for value in &values {
        let job: Job = answers::read(value)?;
        known.lists(&job, admits(value, &job)?);
    }
    watch.print(values)?;
    let stop = tokio::signal::ctrl_c();
    tokio::pin!(stop);
    while !(until_ended && known.open.is_empty()) {
        let frame = tokio::select! {
            frame = events.next() => frame?,
            _ = &mut stop => None,
        };
        let Some(frame) = frame else { break };
        let mut event: Value = serde_json::from_str(&frame.data).map_err(Failure::answer)?;
        let value = event["job"].take();
        let job: Job = answers::read(&value)?;
        let admitted = admits(&value, &job)?;
        if known.takes(&job, admitted) {
            watch.print(vec![value])?;
        }
    }
    Ok(Exit::Done)
}

/// The jobs that a watched list has shown.
#[derive(Default)]
struct Known {
    /// Jobs that were shown and have not ended.
    open: BTreeSet<String>,
    /// Jobs that had ended when they were listed. Their events in the stream are older than the list and are skipped.
    ended: BTreeSet<String>,
}

impl Known {
    /// Adds a job of the initial list.
    fn lists(&mut self, job: &Job, admitted: bool) {
        if job.is_terminal() {
            self.ended.insert(job.id.clone());
        } else if admitted {
            self.open.insert(job.id.clone());
        }
    }

    /// Adds a job from an event; returns whether to show the job. A job that has just stopped matching is shown one
    /// last time.
    fn takes(&mut self, job: &Job, admitted: bool) -> bool {
        if self.ended.contains(&job.id) {
            if job.is_terminal() {
                self.ended.remove(&job.id);
            }
            return false;
        }
        let was = self.open.remove(&job.id);
        if admitted && !job.is_terminal() {
            self.open.insert(job.id.clone());
        }
        admitted || was
    }
}

/// The jobs of a list, and why the list may be incomplete.
struct JobPage {
    jobs: Vec<Value>,
    beyond: Beyond,
}

/// The reason why a list is incomplete.
enum Beyond {
    Nothing,
    /// More jobs match than were requested.
    More,
    /// Only this many jobs were searched, and there are more.
    NotLookedAt(usize),
}

/// A reader of the selected jobs; it ignores filters, which the caller checks.
pub(super) fn pages<'a>(client: &'a Client, options: &Options, now: f64) -> Pages<'a> {
    let mut query = Vec::new();
    query.extend(options.status.clone().map(|status| ("status", status)));
    query.extend(options.agent.clone().map(|agent| ("agent", agent)));
    query.extend(options.labels.iter().map(|(key, value)| ("label", format!("{key}={value}"))));
    query.extend(options.text.clone().map(|text| ("text", text)));
    query.extend(options.since.map(|since| ("since", format!("{:.6}", now - since.as_secs_f64()))));
    Pages::new(client, query)
}

/// Fetches up to the requested number of matching jobs, newest first. With another sort order, it fetches all
/// candidates, because any of them can come first.
async fn fetch(client: &Client, options: &Options, now: f64) -> Result<JobPage, Failure> {
    let selects = options.list.selects() || !options.labels.is_empty() || options.text.is_some();
    let default = if selects { PAGE as u32 } else { LIMIT_DEFAULT };
    let wanted = options.list.limit().unwrap_or(default) as usize;
    let mut pages = pages(client, options, now);
    let (mut jobs, mut looked_at) = (Vec::new(), 0);
    while looked_at < LOOKED_AT_MAX || !selects {
        let page = pages.next(if selects { PAGE } else { wanted + 1 - jobs.len() }).await?;
        looked_at += page.len();
        if looked_at == page.len() {
            check(&options.list, &page)?;
        }
        if page.is_empty() {
            break;
        }
        for value in page {
            if options.admits(&value, &answers::read(&value)?, now)? {
                jobs.push(value);
            }
        }
        if jobs.len() > wanted && !options.list.sorts() {
            jobs.truncate(wanted);
            return Ok(JobPage { jobs, beyond: Beyond::More });
        }
    }
    let beyond = match pages.over() {
        true if jobs.len() > wanted => Beyond::More,
        true => Beyond::Nothing,
        false => Beyond::NotLookedAt(looked_at),
    };
    Ok(JobPage { jobs, beyond })
}

/// Refuses an option that names a member which no job has.
pub(super) fn check(options: &ListOptions, jobs: &[Value]) -> Result<(), Failure> {
    LIST.check(options, jobs)
}

/// Prints all jobs page by page, because the whole list may not fit in memory.
async fn all(context: &Context, client: &Client, options: &Options, now: f64) -> Result<usize, Failure> {
    let mut pages = pages(client, options, now);
    let whole = options.list.sorts() || matches!(context.form, Form::Json | Form::Yaml);
    let (mut kept, mut count) = (Vec::new(), 0);
    let mut printed = (!whole).then(|| Watch::new(context, &LIST, &options.list)).transpose()?;
    loop {
        let page = pages.next(PAGE).await?;
        if page.is_empty() {
            break;
        }
        check(&options.list, &page)?;
        let mut jobs = Vec::new();
        for value in page {
            if options.admits(&value, &answers::read(&value)?, now)? {
                jobs.push(value);
            }
        }
        count += jobs.len();
        match &mut printed {
            Some(list) => list.print(jobs)?,
            None => kept.append(&mut jobs),
        }
    }
    if printed.is_none() || count == 0 {
        context.list(Value::Array(kept), &options.list, &LIST)?;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_shown_while_they_are_wanted_and_once_more() {
        let job = |id: &str, status: &str| Job { id: id.to_owned(), status: status.to_owned(), ..Job::default() };
        let mut known = Known::default();
        known.lists(&job("a", "running"), true);
        known.lists(&job("b", "completed"), true);
        assert!(known.takes(&job("a", "running"), true));
        assert!(!known.takes(&job("b", "running"), true), "the list was later than this");
        assert!(!known.takes(&job("b", "completed"), true));
        assert!(!known.takes(&job("c", "pending"), false));
        assert!(known.takes(&job("a", "completed"), false));
        assert!(known.takes(&job("d", "completed"), true));
        assert!(known.open.is_empty() && known.ended.is_empty(), "what has ended is forgotten");
    }

    #[test]
    fn a_text_is_looked_for_in_errors_and_labels() {
        let labels = [("team".to_owned(), "Blue-Sky".to_owned())].into();
        let job = Job { labels, ..Job::default() };
        let found = |text: &str| has_words(&job, text);
        assert!(found("blue") && found("SKY, team"));
        assert!(!found("blu") && !found("blue green") && !found(" - "));
    }

    #[test]
    fn the_stream_is_asked_for_what_the_list_was_asked_for() {
        let options = Options {
            status: Some("failed".to_owned()),
            agent: Some("hello".to_owned()),
            labels: vec![("team".to_owned(), "a".to_owned())],
            since: Some(std::time::Duration::from_secs(60)),
            ..Options::default()
        };
        let value =
            serde_json::json!({"status": "failed", "agent_name": "hello", "labels": {"team": "a"}, "created_at": 50.0});
        let admits = |member: &str, other: Value| {
            let mut value = value.clone();
            value[member] = other;
            options.admits(&value, &answers::read(&value).expect("a job"), 100.0).expect("no filter")
        };
        assert!(admits("status", "failed".into()));
        for (member, other) in [("status", "running".into()), ("agent_name", "x".into()), ("created_at", 39.0.into())] {
            assert!(!admits(member, other), "{member}");
        }
        assert!(!admits("labels", serde_json::json!({"team": "b"})));
    }
}
