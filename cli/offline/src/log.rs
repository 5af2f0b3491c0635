//! Prints the log of a stopped member: one line per entry, without payloads.

use std::fmt::{self, Write as _};
use std::path::Path;

use atlas_raft::offline::{About, LogContent, LoggedEntry, OfflineError, StoppedMember, Tail};
use atlas_types::MemberId;

/// Why a log cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The member's files cannot be read.
    #[error(transparent)]
    Member(#[from] OfflineError),
    /// An entry of the state cannot be decoded.
    #[error("could not decode entry {index}")]
    Format {
        /// Which one.
        index: u64,
        /// What is wrong with it.
        source: atlas_format::FormatError,
    },
}

/// Part of a log.
#[derive(Debug, Clone)]
pub struct Page {
    /// What the member's files say at a glance.
    pub about: About,
    /// The entries asked for.
    pub lines: Vec<Line>,
    /// The index of the first entry that the page leaves out, if the log goes on.
    pub next: Option<u64>,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub index: u64,
    pub term: u64,
    /// `blank`, `membership` or `commands`.
    pub kind: &'static str,
    /// Entries that the state had applied when it was planned.
    pub seq: Option<u64>,
    /// Wall clock of the leader that planned it, in microseconds since 1970.
    pub at: Option<i64>,
    /// Bytes of its body.
    pub bytes: u64,
    /// Its commands by name with how many follow each other, or the members that it sets.
    pub says: Vec<String>,
}

/// Which entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// From this index on.
    From(u64),
    /// The last ones.
    Tail,
}

/// Reads at most `limit` entries of the log of the stopped member in `data_dir`.
pub fn read(data_dir: &Path, range: Range, limit: u64) -> Result<Page, LogError> {
    // The remaining entries can still be printed.
    let member = StoppedMember::open_with(data_dir, Tail::DropDamaged)?;
    let about = member.about();
    let last = about.last.map_or(0, |last| last.index);
    let from = match range {
        Range::From(from) => from,
        Range::Tail => (last + 1).saturating_sub(limit),
    };
    let mut lines = Vec::new();
    let mut next = None;
    for entry in member.entries(from) {
        let entry = entry?;
        if lines.len() as u64 == limit {
            next = Some(entry.id.index);
            break;
        }
        lines.push(line(&entry)?);
    }
    Ok(Page { about, lines, next })
}

fn line(entry: &LoggedEntry) -> Result<Line, LogError> {
    let index = entry.id.index;
    let bytes = entry.bytes as u64;
    let plain = Line { index, term: entry.id.term, kind: "blank", seq: None, at: None, bytes, says: Vec::new() };
    Ok(match &entry.says {
        LogContent::Blank => plain,
        LogContent::Membership { voters, members } => {
            let learners = members.iter().map(|peer| peer.member);
            let learners = learners.filter(|member| !voters.iter().any(|set| set.contains(member)));
            let mut says: Vec<String> = voters.iter().map(|set| format!("voters {}", numbers(set.iter()))).collect();
            let learners: Vec<MemberId> = learners.collect();
            if !learners.is_empty() {
                says.push(format!("learners {}", numbers(learners.iter())));
            }
            Line { kind: "membership", says, ..plain }
        }
        LogContent::Commands(body) => {
            let decoded = atlas_format::decode_entry(body).map_err(|source| LogError::Format { index, source })?;
            let names = decoded.requests.iter().map(|request| name_of(&request.command));
            let (seq, at) = (Some(decoded.parent.seq.0), Some(decoded.at.0));
            Line { kind: "commands", seq, at, says: counted(names), ..plain }
        }
    })
}

fn numbers<'m>(members: impl Iterator<Item = &'m MemberId>) -> String {
    members.map(|member| format!("c{}", member.0)).collect::<Vec<_>>().join(" ")
}

/// Equal neighbours as one: `submit_job ×3`.
fn counted(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut runs: Vec<(String, u32)> = Vec::new();
    for name in names {
        match runs.last_mut().filter(|(last, _)| *last == name) {
            Some((_, count)) => *count += 1,
            None => runs.push((name, 1)),
        }
    }
    runs.into_iter().map(|(name, count)| if count == 1 { name } else { format!("{name} ×{count}") }).collect()
}

/// The name of a command as its file is called: the first word of its debug form, which stops before any payload.
fn name_of(command: &impl fmt::Debug) -> String {
    let mut word = FirstWord::default();
    // It ends with an error at the end of the word.
    let _ = write!(word, "{command:?}");
    word.0
}

/// Takes the first word that is written to it, in lower case with underscores, and no more.
#[derive(Default)]
struct FirstWord(String);

impl fmt::Write for FirstWord {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            if !c.is_ascii_alphanumeric() {
                return Err(fmt::Error);
            }
            if c.is_ascii_uppercase() && !self.0.is_empty() {
                self.0.push('_');
            }
            self.0.push(c.to_ascii_lowercase());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use atlas_env::Env;
    use atlas_types::{ClusterConfig, Command, ConfigureCluster, Namespace, Origin, Request};

    use super::*;

    #[tokio::test]
    async fn a_log_is_told_in_words() {
        let dir = tempfile::tempdir().expect("a directory");
        let options = atlas_raft::Options { history: false, ..atlas_raft::Options::new(dir.path().to_owned()) };
        let (handle, service) = atlas_raft::start(options, Env::system()).await.expect("started");
        let command = Command::ConfigureCluster(ConfigureCluster { config: ClusterConfig::default() });
        let request = Request { origin: Origin::duty(Namespace::default_namespace()), command };
        handle.propose(vec![request.clone(), request]).await.expect("proposed");
        // The log is closed when nobody can ask about it any more.
        drop(handle);
        service.shutdown().await;

        let page = read(dir.path(), Range::From(0), 100).expect("readable");
        let membership = page.lines.iter().find(|line| line.kind == "membership").expect("the first one");
        assert_eq!(membership.says, ["voters c1"]);
        // A new group also raises its level, by an entry without a command.
        let commands = page.lines.iter().filter(|line| line.kind == "commands");
        let said: Vec<_> = commands.inspect(|line| assert!(line.seq.is_some())).flat_map(|line| &line.says).collect();
        assert_eq!(said, ["configure_cluster ×2"]);
        let tail = read(dir.path(), Range::Tail, 1).expect("readable");
        assert_eq!(tail.lines.len(), 1);
        assert_eq!(tail.lines.first().map(|line| line.index), page.about.last.map(|last| last.index));
        let head = read(dir.path(), Range::From(0), 1).expect("readable");
        assert_eq!(head.next, Some(head.lines[0].index + 1));
    }
}
