//! What came of a data set.

use std::collections::BTreeMap;

use atlas_api::types::Job;
use serde_json::{Value, json};

use crate::display::JobDisplay as _;
use crate::words;

/// The result of a check of `eval.yaml`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Check {
    pub(super) name: String,
    pub(super) passed: bool,
    pub(super) message: String,
}

impl Check {
    /// As a trace has it.
    pub(super) fn of(result: &Value) -> Self {
        let text = |name: &str| result[name].as_str().unwrap_or_default().to_owned();
        Self { name: text("name"), passed: result["passed"] == true, message: text("message") }
    }
}

impl Check {
    /// What a judge answered. One that failed has not passed the output.
    pub(super) fn judged(judge: &str, job: &Job) -> Self {
        let answer = job.output_data.clone().unwrap_or_default();
        let reason =
            answer["reason"].as_str().map_or_else(|| format!("{} {}", job.status, job.error_text()), str::to_owned);
        Self { name: judge.to_owned(), passed: answer["passed"] == true, message: reason }
    }
}

/// What came of a case.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ended {
    pub(super) name: String,
    pub(super) job: String,
    pub(super) version: String,
    pub(super) status: String,
    pub(super) error: String,
    pub(super) took_ms: f64,
    pub(super) tokens: u64,
    pub(super) cost_usd: f64,
    pub(super) checks: Vec<Check>,
    pub(super) differences: Vec<String>,
}

impl Ended {
    pub(super) fn passed(&self) -> bool {
        self.status == "completed" && self.differences.is_empty() && self.checks.iter().all(|check| check.passed)
    }

    /// Why it did not pass.
    pub(super) fn wrong(&self) -> Vec<String> {
        let failed = self.checks.iter().filter(|check| !check.passed);
        let mut wrong: Vec<String> = failed.map(|check| format!("{}: {}", check.name, check.message)).collect();
        wrong.extend(self.differences.iter().cloned());
        if !self.error.is_empty() {
            wrong.push(self.error.clone());
        }
        wrong
    }
}

/// What came of all cases with one version.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Score {
    pub(super) version: String,
    pub(super) ended: Vec<Ended>,
}

impl Score {
    fn passed(&self) -> usize {
        self.ended.iter().filter(|ended| ended.passed()).count()
    }

    /// The share of cases that passed.
    pub(super) fn share(&self) -> f64 {
        if self.ended.is_empty() { 0.0 } else { self.passed() as f64 / self.ended.len() as f64 }
    }

    /// The time under which this share of the cases took, in milliseconds.
    fn took(&self, share: f64) -> f64 {
        let mut took: Vec<f64> = self.ended.iter().map(|ended| ended.took_ms).collect();
        took.sort_by(f64::total_cmp);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list")]
        let place = ((took.len() as f64 * share).ceil() as usize).saturating_sub(1);
        took.get(place).copied().unwrap_or_default()
    }

    /// How often each check passed, by name.
    fn checks(&self) -> BTreeMap<&str, (usize, usize)> {
        let mut checks = BTreeMap::new();
        for check in self.ended.iter().flat_map(|ended| &ended.checks) {
            let (passed, all) = checks.entry(check.name.as_str()).or_insert((0, 0));
            *passed += usize::from(check.passed);
            *all += 1;
        }
        checks
    }

    fn cost(&self) -> f64 {
        self.ended.iter().map(|ended| ended.cost_usd).sum()
    }

    /// One line for people.
    pub(super) fn summary(&self, agent: &str) -> String {
        let (passed, all) = (self.passed(), self.ended.len());
        let mut line = format!("{agent} {}: {passed} of {all} passed, score {:.3}", self.version, self.share());
        for (name, (passed, all)) in self.checks() {
            line += &format!(", {name} {passed}/{all}");
        }
        line += &format!("; p50 {}, p95 {}", words::milliseconds(self.took(0.5)), words::milliseconds(self.took(0.95)));
        if self.cost() > 0.0 {
            line += &format!(", {}", words::dollars(self.cost()));
        }
        line
    }

    pub(super) fn value(&self) -> Value {
        let cases: Vec<Value> = self
            .ended
            .iter()
            .map(|ended| {
                json!({
                    "name": ended.name, "job": ended.job, "status": ended.status, "passed": ended.passed(), "wrong": ended.wrong(),
                    "took_ms": ended.took_ms, "tokens": ended.tokens, "cost_usd": ended.cost_usd,
                })
            })
            .collect();
        let checks: BTreeMap<&str, Value> = self
            .checks()
            .into_iter()
            .map(|(name, (passed, all))| (name, json!({"passed": passed, "cases": all})))
            .collect();
        json!({
            "version": self.version, "score": self.share(), "passed": self.passed(), "cases": cases, "checks": checks,
            "p50_ms": self.took(0.5), "p95_ms": self.took(0.95), "cost_usd": self.cost(),
        })
    }
}

/// The cases that passed with one version alone.
pub(super) fn changed(first: &Score, second: &Score) -> Vec<String> {
    let pairs = first.ended.iter().zip(&second.ended).filter(|(first, second)| first.passed() != second.passed());
    let told = |(one, _): (&Ended, &Ended)| {
        let (passes, fails) = match one.passed() {
            true => (&first.version, &second.version),
            false => (&second.version, &first.version),
        };
        format!("case {} passes with {passes} alone, not with {fails}", one.name)
    };
    pairs.map(told).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn ended(name: &str, took_ms: f64, passed: bool) -> Ended {
        let check = Check { name: "has text".to_owned(), passed, message: "it is missing".to_owned() };
        Ended {
            name: name.to_owned(),
            job: format!("job-{name}"),
            version: "1.0.0".to_owned(),
            status: "completed".to_owned(),
            error: String::new(),
            took_ms,
            tokens: 3,
            cost_usd: 0.001,
            checks: vec![check],
            differences: Vec::new(),
        }
    }

    #[test]
    fn a_score_is_the_share_of_cases_that_passed() {
        let failed = Ended {
            status: "failed".to_owned(),
            error: "late".to_owned(),
            checks: Vec::new(),
            ..ended("c", 9.0, true)
        };
        let score =
            Score { version: "1.0.0".to_owned(), ended: vec![ended("a", 1.0, true), ended("b", 2.0, false), failed] };
        expect!["talk 1.0.0: 1 of 3 passed, score 0.333, has text 1/2; p50 2 ms, p95 9 ms, $0.0030"]
            .assert_eq(&score.summary("talk"));
        assert_eq!(score.ended[1].wrong(), ["has text: it is missing"]);
        assert_eq!(score.ended[2].wrong(), ["late"]);
        let other = Score { version: "2.0.0".to_owned(), ended: vec![ended("a", 1.0, true), ended("b", 1.0, true)] };
        assert_eq!(changed(&score, &other), ["case b passes with 2.0.0 alone, not with 1.0.0"]);
        let empty = Score { version: String::new(), ended: Vec::new() };
        assert_eq!((empty.share(), empty.took(0.5)), (0.0, 0.0));
    }
}
