//! What the harness does for jobs besides faults: it answers their questions, sends them messages, and lets those that failed go on.

use std::time::Duration;

use serde_json::{Value, json};

use super::drive::{Drive, Family, POLL};
use super::plan::{Planned, Victim};
use super::trace::{self, Word};
use crate::chaos::{Outcome, Request};

/// Longest time until one request is answered.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(60);

impl Drive {
    /// Answers what jobs ask, sends them what they wait for, and lets those that failed go on.
    pub(super) fn look_after(&mut self) -> Result<(), String> {
        self.answer();
        for number in 0..self.families.len() {
            if self.families[number].output.is_some() {
                continue;
            }
            self.send_message(number);
            let family = &self.families[number];
            let Some(job) = self.read(&format!("/api/jobs/{}?view=full", family.job())) else { continue };
            match job["status"].as_str() {
                Some("completed") => self.families[number].output = Some(job["output_data"].clone()),
                Some("failed") => self.go_on(number, &job)?,
                Some("cancelled") => {
                    self.report.violations.push(format!("{}: its job was cancelled: {job}", family.name));
                    self.families[number].output = Some(Value::Null);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Continues a job that failed because its agent was killed, or because it was lost as often as it may be.
    fn go_on(&mut self, number: usize, job: &Value) -> Result<(), String> {
        let family = &self.families[number];
        let error = job["error"].as_str().unwrap_or_default();
        let (lost, ended) = (error.starts_with("lease lost"), error.contains("exited") || error.contains("signal"));
        // The failure of an agent may be seen before its fault is.
        let killed = family.faults.iter().filter(|fault| fault.victim == Victim::Agent && self.is_over(family, fault));
        if !lost && (!ended || family.failures >= killed.count()) {
            self.report.violations.push(format!("{}: it failed without a reason: {error}", family.name));
        }
        self.report.count(if lost { "jobs lost too often" } else { "jobs failed with their agents" });
        let (path, key) =
            (format!("/api/jobs/{}/retry?resume=true", family.job()), format!("{}-{}", family.name, family.jobs.len()));
        let again = self.insist(&path, &json!({}), &key)?;
        let id = again["id"].as_str().ok_or(format!("no id: {again}"))?.to_owned();
        self.rig.note(&format!("{}: {error}; goes on as {id}", self.families[number].name));
        let family = &mut self.families[number];
        family.failures += usize::from(!lost);
        family.jobs.push(id);
        Ok(())
    }

    /// Whether a program has come to this fault.
    pub(super) fn is_over(&self, family: &Family, fault: &Planned) -> bool {
        !self.files.join(fault.file(&family.name)).exists()
    }

    /// Sends the message to the current job of a family that waits for it.
    fn send_message(&mut self, number: usize) {
        let family = &self.families[number];
        let job = family.job().to_owned();
        if family.messaged.contains(&job) {
            return;
        }
        let lines = trace::read(&self.files, &family.name);
        let did = |word| lines.iter().any(|line| line.job == job && line.word == word && line.of == "receive");
        if did(Word::Waits) && !did(Word::Went) {
            let body = json!({"message": "hello", "channel": "go", "id": format!("to-{job}")});
            if self.try_post(&format!("/api/jobs/{job}/messages"), &body, &format!("message-{job}")).is_ok() {
                self.families[number].messaged.insert(job);
            }
        }
    }

    /// Answers open questions: what came of a step in doubt as the trace of its family says, and others with yes.
    fn answer(&mut self) {
        let Some(questions) = self.read("/api/questions?status=open") else { return };
        for question in questions.as_array().into_iter().flatten() {
            let (Some(id), Some(job)) = (question["id"].as_str(), question["job"].as_str()) else { continue };
            let Some(number) = self.families.iter().position(|family| family.job() == job) else { continue };
            let family = &self.families[number];
            let prompt = question["prompt"].as_str().unwrap_or_default();
            let step = prompt.split_once("Step 's").and_then(|(_, rest)| rest.split('\'').next()?.parse::<u64>().ok());
            let answer = match step {
                None => "yes".to_owned(),
                Some(step) => {
                    let happened =
                        trace::read(&self.files, &family.name).iter().any(|line| line.is(Word::Effect, step));
                    match (happened, self.rng.chance(500)) {
                        (false, _) => "did not happen".to_owned(),
                        (true, false) => "happened".to_owned(),
                        (true, true) => family.language.recorded(step),
                    }
                }
            };
            let path = format!("/api/questions/{id}/answer");
            if self.try_post(&path, &json!({"answer": answer}), &format!("answer-{id}")).is_ok() {
                let id = id.to_owned();
                self.rig.note(&format!("{}: {prompt} {answer}", self.families[number].name));
                let family = &mut self.families[number];
                if family.answered.insert(id)
                    && let Some(step) = step
                {
                    family.asked.push(step);
                    self.report.count("questions about steps in doubt");
                }
            }
        }
    }

    /// What a controller answers, the first that does.
    pub(super) fn read(&self, path: &str) -> Option<Value> {
        (0..self.rig.controllers.len()).find_map(|which| self.rig.get(which, path))
    }

    /// Sends a change to the controllers in turn, with a key that makes a repetition harmless. The error is the last answer.
    fn try_post(&self, path: &str, body: &Value, key: &str) -> Result<Value, String> {
        let mut last = "nobody was asked".to_owned();
        for at in self.rig.addresses() {
            let request =
                || Request { method: "POST", path, body: Some(body.clone()), key: Some(key), ..Request::default() };
            match self.rig.ask(async |http| http.call(at, request()).await) {
                Outcome::Done(answer) => return Ok(answer.body),
                other => last = format!("{other:?}"),
            }
        }
        Err(last)
    }

    /// Repeats a change until it is done.
    pub(super) fn insist(&self, path: &str, body: &Value, key: &str) -> Result<Value, String> {
        let until = self.now() + ANSWER_MAX;
        loop {
            match self.try_post(path, body, key) {
                Ok(answer) => return Ok(answer),
                Err(last) if self.now() > until => return Err(format!("{path} was not done: {last}")),
                Err(_) => std::thread::sleep(POLL),
            }
        }
    }
}
