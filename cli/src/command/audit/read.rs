//! `atlasctl audit query` and `tail`: records of all controllers, page by page.

use std::time::Duration;

use atlas_api::types::{AuditPage, AuditRecord};
use atlas_audit::{Decision, Record};
use atlas_env::Env;
use serde_json::Value;

use crate::answers;
use crate::client::Client;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::words;

/// Records in one request.
const PAGE: u64 = 1_000;
/// How often `tail` asks for more.
const PAUSE: Duration = Duration::from_secs(1);

/// Which records.
#[derive(Debug, clap::Args)]
pub(crate) struct Filter {
    /// Only those of this principal.
    #[arg(long)]
    principal: Option<String>,
    /// Only those of this operation, such as submitJob or putObject.
    #[arg(long)]
    verb: Option<String>,
    /// Only those about objects that begin with this, such as agent/ or secret/db.
    #[arg(long)]
    object: Option<String>,
    /// Only those in this namespace, as with -n.
    #[arg(long = "in", value_name = "NAMESPACE")]
    within: Option<String>,
    /// Only those with this decision.
    #[arg(long, value_parser = ["allow", "failed", "deny", "dropped"])]
    decision: Option<String>,
    /// Only those of the last so much time.
    #[arg(long, value_name = "DURATION", value_parser = words::parse_duration)]
    since: Option<Duration>,
    /// Only those from before the last so much time.
    #[arg(long, value_name = "DURATION", value_parser = words::parse_duration)]
    until: Option<Duration>,
    /// Only those of this controller, by name or number; by default those of all.
    #[arg(long, value_name = "CONTROLLER")]
    member: Option<String>,
    /// Continues where the answer with this cursor ended.
    #[arg(long)]
    cursor: Option<String>,
}

/// Options of `atlasctl audit query`.
#[derive(Debug, clap::Args)]
pub(crate) struct Query {
    #[command(flatten)]
    filter: Filter,
    /// At most so many; a cursor for the next ones is printed.
    #[arg(long, value_name = "COUNT", value_parser = words::parse_number)]
    limit: Option<u64>,
}

/// A question to the cluster.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    member: Option<String>,
    cursor: String,
    /// Conditions, as the query of the request.
    filter: Vec<(&'static str, String)>,
    /// The most records; none for all.
    limit: Option<u64>,
}

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// Where the next records begin.
    pub(super) cursor: String,
    /// Whether there are more.
    pub(super) more: bool,
    /// The controllers that answered.
    pub(super) answered: Vec<String>,
    /// The controllers that did not, and why.
    pub(super) missing: Vec<(String, String)>,
}

impl Filter {
    /// The question of a command.
    fn asked(&self, context: &Context) -> Asked {
        let now = context.look.now;
        let within = self.within.clone().or_else(|| context.named_namespace().map(str::to_owned));
        let ago =
            |name, time: Option<Duration>| time.map(|time| (name, (now - time.as_secs_f64()).max(0.0).to_string()));
        let text = |name, value: &Option<String>| value.clone().map(|value| (name, value));
        let filter = [
            text("principal", &self.principal),
            text("verb", &self.verb),
            text("object", &self.object),
            text("namespace", &within),
            text("decision", &self.decision),
            ago("since", self.since),
            ago("until", self.until),
        ];
        Asked {
            member: self.member.clone(),
            cursor: self.cursor.clone().unwrap_or_default(),
            filter: filter.into_iter().flatten().collect(),
            limit: None,
        }
    }
}

impl Asked {
    /// All records after a cursor.
    pub(super) fn all(member: Option<String>, cursor: &str) -> Self {
        Self { member, cursor: cursor.to_owned(), ..Self::default() }
    }

    /// One page, without its records.
    pub(super) async fn page(&self, client: &Client) -> Result<Read, Failure> {
        self.fetch(client, 1).await.map(|page| read(page).1)
    }

    /// Calls a function with each record.
    pub(super) async fn each(
        mut self,
        client: &Client,
        mut call: impl FnMut(AuditRecord) -> Result<(), Failure>,
    ) -> Result<Read, Failure> {
        let (mut left, mut all) = (self.limit.unwrap_or(u64::MAX), Read::default());
        loop {
            let (records, page) = read(self.fetch(client, left.min(PAGE)).await?);
            left = left.saturating_sub(records.len() as u64);
            records.into_iter().try_for_each(&mut call)?;
            for away in page.missing {
                if all.missing.iter().all(|(member, _)| *member != away.0) {
                    all.missing.push(away);
                }
            }
            (all.answered, all.more) = (page.answered, page.more);
            // An answer that does not go on ends the loop.
            let goes_on = page.more && left > 0 && page.cursor != self.cursor;
            self.cursor = page.cursor;
            if !goes_on {
                return Ok(Read { cursor: self.cursor, ..all });
            }
        }
    }

    async fn fetch(&self, client: &Client, limit: u64) -> Result<AuditPage, Failure> {
        let limit = limit.to_string();
        let mut query: Vec<(&str, &str)> = self.filter.iter().map(|(name, value)| (*name, value.as_str())).collect();
        query.extend([("cursor", self.cursor.as_str()), ("limit", limit.as_str())]);
        query.extend(self.member.as_deref().map(|member| ("member", member)));
        let answer = client.get(&["api", "audit"], &query).await?;
        answers::read(&answer)
    }
}

/// The records of a page, and the rest of it.
fn read(page: AuditPage) -> (Vec<AuditRecord>, Read) {
    let answered = page.members.into_iter().map(|found| found.member).collect();
    let missing = page.missing.into_iter().map(|away| (away.member, away.reason)).collect();
    (page.records, Read { cursor: page.cursor, more: page.more, answered, missing })
}

/// Says which controllers did not answer. Records are missing then, which is a warning.
pub(super) fn tell_missing(context: &Context, missing: &[(String, String)]) -> Exit {
    for (member, reason) in missing {
        context.must_know(&format!("warning: {member} does not answer, and its records are missing: {reason}"));
    }
    if missing.is_empty() { Exit::Done } else { Exit::Short }
}

pub(super) async fn query(context: &Context, options: &Query) -> Result<Exit, Failure> {
    let client = context.client()?;
    let asked = Asked { limit: options.limit, ..options.filter.asked(context) };
    let read = asked.each(&client, |record| show(context, &record)).await?;
    if read.more {
        context.next(&format!("next: the same with --cursor {}", read.cursor));
    }
    Ok(tell_missing(context, &read.missing))
}

pub(super) async fn tail(context: &Context, filter: &Filter) -> Result<Exit, Failure> {
    let client = context.client()?;
    let mut asked = filter.asked(context);
    if asked.cursor.is_empty() {
        // Only what is new.
        asked.cursor = "end".to_owned();
    }
    let mut away: Vec<String> = Vec::new();
    loop {
        let read = asked.clone().each(&client, |record| show(context, &record)).await?;
        let (new, known): (Vec<_>, Vec<_>) = read.missing.into_iter().partition(|(member, _)| !away.contains(member));
        tell_missing(context, &new);
        let now: Vec<String> = new.into_iter().chain(known).map(|(member, _)| member).collect();
        for member in away.iter().filter(|member| !now.contains(member)) {
            context.must_know(&format!("{member} answers again"));
        }
        (away, asked.cursor) = (now, read.cursor);
        Env::system().clock.sleep(PAUSE).await;
    }
}

fn show(context: &Context, found: &AuditRecord) -> Result<(), Failure> {
    let AuditRecord { member, line } = found;
    // What is damaged is shown as it is.
    let mut value = serde_json::from_str(line).unwrap_or_else(|_| Value::String(line.clone()));
    let names = value["number"].as_u64().map(|number| format!("audit/{member}/{number}")).into_iter().collect();
    let text = match serde_json::from_value::<Record>(value.clone()) {
        Ok(record) => told(&record, member),
        Err(_) => format!("{line}\n"),
    };
    if let Value::Object(members) = &mut value {
        members.insert("member".to_owned(), Value::String(member.clone()));
    }
    context.show(&Shown { value, text, names })
}

/// A record in one line.
fn told(record: &Record, member: &str) -> String {
    let time = words::date_and_time(record.at_ms as f64 / 1e3);
    if record.decision == Decision::Dropped {
        return format!("{time}  {} denials were not recorded one by one  at {member}\n", record.count);
    }
    let mut text = format!("{time}  {:<6}  {}", record.decision.as_str(), record.principal);
    if !record.on_behalf_of.is_empty() {
        text += &format!(" for {}", record.on_behalf_of);
    }
    text += &format!("  {} {}", record.verb, record.object);
    if !record.namespace.is_empty() {
        text += &format!(" in {}", record.namespace);
    }
    if !record.code.is_empty() {
        text += &format!("  {}", record.code);
    }
    text + &format!("  at {member}\n")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn records_are_told_in_one_line() {
        let record = Record {
            at_ms: 1_764_100_000_000,
            principal: "ann".to_owned(),
            on_behalf_of: String::new(),
            namespace: "prod".to_owned(),
            door: "http".to_owned(),
            verb: "putObject".to_owned(),
            object: "secret/db".to_owned(),
            decision: Decision::Deny,
            code: "E2107".to_owned(),
            request_id: String::new(),
            count: 0,
        };
        expect![[r#"
            deny    ann  putObject secret/db in prod  E2107  at c1
        "#]]
        .assert_eq(told(&record, "c1").split_once("  ").expect("a time").1);
        let dropped = Record { decision: Decision::Dropped, count: 7, ..record };
        assert!(told(&dropped, "c1").ends_with("  7 denials were not recorded one by one  at c1\n"));
    }
}
