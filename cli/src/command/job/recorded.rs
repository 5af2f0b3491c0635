//! The recorded steps of a job, with all their outcomes, and its replay.

use atlas_api::types::{Job, JobStep};
use atlas_checks::Schemas;
use atlas_contract::platform;
use atlas_turn::replay::{Ending, Replay, ReplayError, Step, replay};
use atlas_turn::{ChosenSettings, images, messages, model_member};
use atlas_types::CONVERSATION_METADATA;
use serde_json::{Value, json};

use crate::answers;
use crate::client::Client;
use crate::exit::Exit;
use crate::failure::Failure;

/// A job with its steps.
pub(super) struct Recorded {
    pub(super) job: Job,
    pub(super) steps: Vec<Step>,
    /// The input without the images, and the images.
    input: Value,
    images: Vec<atlas_model::Image>,
    said: Vec<atlas_model::Message>,
    /// Whether the agent has a `config.yaml`.
    is_normal: bool,
    /// Whether it is a durable program: only the program itself can tell what it asks for.
    pub(super) is_program: bool,
}

/// The size of the outcome `null`, which a page also shows instead of an outcome that it has no room for.
const NULL_BYTES: u64 = 4;

impl Recorded {
    /// Reads a job and its steps.
    pub(super) async fn read(client: &Client, id: &str) -> Result<Self, Failure> {
        let value = client.get(&["api", "jobs", id], &[("view", "full")]).await?;
        let job: Job = answers::read(&value)?;
        let steps = steps(client, &job.id).await?;
        if steps.is_empty() {
            return Err(empty(&job));
        }
        let (mut input, mut images, mut said) = (job.input_data.clone(), Vec::new(), Vec::new());
        let contract = contract(client, &job).await?;
        let is_program = contract["durable"] == true;
        let provider = &contract["provider"];
        let member = |name: &str| provider.get(name).and_then(Value::as_str);
        if let Some(member) = member("images") {
            images = images::take(&mut input, member).map_err(Failure::answer)?;
        }
        if let Some(member) = member("messages") {
            said = messages::take(&mut input, member).map_err(Failure::answer)?;
        }
        if let Some(member) = member("settings") {
            ChosenSettings::take(&mut input, member).map_err(Failure::answer)?;
            let named = contract["model"]["name"].as_str().and_then(model_member);
            if let (Some(named), Some(members)) = (named, input.as_object_mut()) {
                members.shift_remove(named);
            }
        }
        let is_normal = member("type") == Some("normal");
        if is_normal && job.metadata.contains_key(CONVERSATION_METADATA) {
            said = messages::continued(&input).map_err(Failure::answer)?;
        }
        Ok(Self { job, steps, input, images, said, is_normal, is_program })
    }

    /// Runs the agent loop over the first `count` steps. No model and no tool is called.
    pub(super) fn replay(&self, count: usize) -> Result<Replay, Failure> {
        let steps = self.steps.get(..count).unwrap_or(&self.steps);
        let replayed = replay(steps, &self.input, self.images.clone(), self.said.clone(), Schemas::of, platform::ran);
        let mut replayed = replayed.map_err(|error| refused(&self.job, &error))?;
        if let (true, Replay::Same(Ending::Finished { output, .. })) = (self.is_normal, &mut replayed) {
            // The worker gives the text of such an agent its own name.
            *output = json!({ "text": output["result"].take() });
        }
        Ok(replayed)
    }
}

/// All steps. An outcome that a page has no room for is the first one of the next page.
async fn steps(client: &Client, id: &str) -> Result<Vec<Step>, Failure> {
    let mut steps: Vec<Step> = Vec::new();
    loop {
        let after = steps.len().checked_sub(1).map(|last| last.to_string());
        let mut query = vec![("limit", "1000")];
        query.extend(after.as_deref().map(|after| ("after", after)));
        let page: Vec<JobStep> = answers::read(&client.get(&["api", "jobs", id, "steps"], &query).await?)?;
        let known = steps.len();
        for row in page {
            if row.step != steps.len() as u64 {
                return Err(Failure::answer(format!("step {} follows step {}", row.step, steps.len())));
            }
            if row.outcome.is_null() && row.outcome_bytes > NULL_BYTES {
                break;
            }
            steps.push(Step { kind: row.kind, key: row.key, outcome: row.outcome });
        }
        if steps.len() == known {
            return Ok(steps);
        }
    }
}

/// The contract that the job ran; null if that version was deleted.
async fn contract(client: &Client, job: &Job) -> Result<Value, Failure> {
    let answer = client.get(&["api", "agents", &job.agent_name], &[("version", &job.agent_version)]).await;
    match answer {
        Err(failure) if failure.exit == Exit::NotFound => Ok(Value::Null),
        answer => Ok(answer?["contract"].take()),
    }
}

fn empty(job: &Job) -> Failure {
    let text = format!(
        "the job {} has recorded no steps; only agents with a model, graphs and durable programs record them",
        job.id
    );
    Failure::new("E3016", Exit::Invalid, text).with_next(format!("what it did: atlasctl job show {}", job.id))
}

fn refused(job: &Job, error: &ReplayError) -> Failure {
    let failure = match error {
        ReplayError::Empty => return empty(job),
        ReplayError::Level { .. } => Failure::new("E3205", Exit::Unreachable, error.to_string()),
        ReplayError::NotAnAgent { .. } | ReplayError::Unreadable { .. } => {
            Failure::new("E3013", Exit::Conflict, error.to_string())
        }
    };
    failure.with_next(format!("list the recorded steps: atlasctl job steps {}", job.id))
}
