//! The file of side effects: the children themselves, without Atlas, append a line for everything they do.
//!
//! A child records that it has started, that it is still running, and that it has ended. The kernel orders the lines of
//! all children, so a line of an attempt after the start of the next attempt shows that both ran at the same time.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use atlas_env::Env;
use serde_json::{Value, json};

/// Interval between two lines of a running child.
const BEAT: Duration = Duration::from_millis(25);

/// The event that a line records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    Start,
    Beat,
    End,
}

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) job: String,
    pub(crate) attempt: u64,
    pub(crate) sign: Sign,
}

/// The program of the child: runs for the time in its input and records it in the file. Its output contains the job and
/// the attempt.
pub fn child(file: &Path) -> io::Result<()> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let document: Value = serde_json::from_str(&text)?;
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let (job, attempt) = (variable("ATLAS_JOB_ID"), variable("ATLAS_ATTEMPT"));
    let mut effects = File::options().append(true).create(true).open(file)?;
    // One write per line, so that each line is appended completely or not at all.
    let mut say = |sign: &str| effects.write_all(format!("{job} {attempt} {sign}\n").as_bytes());
    let clock = Env::system().clock;
    let until = clock.monotonic() + Duration::from_millis(document["input"]["ms"].as_u64().unwrap_or(0));
    say("start")?;
    loop {
        let left = until.saturating_sub(clock.monotonic());
        if left.is_zero() {
            break;
        }
        std::thread::sleep(left.min(BEAT));
        say("beat")?;
    }
    say("end")?;
    let pad = "x".repeat(usize::try_from(document["input"]["pad"].as_u64().unwrap_or(0)).unwrap_or(0));
    let output = json!({"job": job, "attempt": attempt.parse::<u64>().unwrap_or(0), "pad": pad});
    io::stdout().write_all(output.to_string().as_bytes())
}

/// All lines, in order; none if the file does not exist.
pub(crate) fn read(file: &Path) -> Vec<Effect> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => panic!("the side effects cannot be read: {error}"),
    };
    text.lines().map(|line| parse(line).unwrap_or_else(|| panic!("no side effect: {line:?}"))).collect()
}

fn parse(line: &str) -> Option<Effect> {
    let mut words = line.split(' ');
    let (job, attempt, sign) = (words.next()?, words.next()?, words.next()?);
    let sign = match sign {
        "start" => Sign::Start,
        "beat" => Sign::Beat,
        "end" => Sign::End,
        _ => return None,
    };
    Some(Effect { job: job.to_owned(), attempt: attempt.parse().ok()?, sign })
}

/// The lines of one job, evaluated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Deeds {
    /// The number of starts of each attempt, and whether it ended.
    pub(crate) attempts: BTreeMap<u64, (u64, bool)>,
    /// Attempts with a line after the start of a later attempt, paired with the later attempt.
    pub(crate) overlaps: Vec<(u64, u64)>,
}

impl Deeds {
    /// The number of starts of all attempts.
    pub(crate) fn starts(&self) -> u64 {
        self.attempts.values().map(|(starts, _)| starts).sum()
    }
}

/// Groups the lines by job.
pub(crate) fn deeds(effects: &[Effect]) -> BTreeMap<String, Deeds> {
    let mut jobs: BTreeMap<String, Deeds> = BTreeMap::new();
    for effect in effects {
        let deeds = jobs.entry(effect.job.clone()).or_default();
        let latest = deeds.attempts.keys().next_back().copied().unwrap_or(0);
        if effect.attempt < latest && !deeds.overlaps.contains(&(effect.attempt, latest)) {
            deeds.overlaps.push((effect.attempt, latest));
        }
        let (starts, ended) = deeds.attempts.entry(effect.attempt).or_default();
        match effect.sign {
            Sign::Start => *starts += 1,
            Sign::Beat => {}
            Sign::End => *ended = true,
        }
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &str) -> Deeds {
        let effects: Vec<Effect> = lines.split(", ").map(|line| parse(&format!("j {line}")).expect("a line")).collect();
        deeds(&effects)["j"].clone()
    }

    #[test]
    fn a_later_attempt_after_the_death_of_the_first_is_no_overlap() {
        let deeds = of("1 start, 1 beat, 2 start, 2 end");
        assert_eq!((deeds.starts(), deeds.overlaps.len()), (2, 0));
        assert_eq!(deeds.attempts, BTreeMap::from([(1, (1, false)), (2, (1, true))]));
    }

    #[test]
    fn a_sign_of_life_after_the_next_start_is_an_overlap() {
        assert_eq!(of("1 start, 2 start, 1 beat, 1 end, 2 end").overlaps, [(1, 2)]);
    }
}
