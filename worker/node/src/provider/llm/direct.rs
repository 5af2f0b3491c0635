//! Jobs of one model call: the input has the request of a client, and the output is the model's answer. Tools of the request are offered to the
//! model and not run: their calls are part of the answer, for the client.
//!
//! The call goes the way of every model call: limits, budgets, fallbacks, outages, and a record that a later attempt takes instead of a second
//! call.

use std::sync::Arc;

use atlas_model::task::NUMBERS;
use atlas_model::{Answer, ModelTask, NanoDollars, Request, Stop};
use atlas_turn::record::{AnswerOutcome as Recorded, START};
use atlas_turn::{CountedUsage, Failure, Key, Outage, used};
use atlas_types::{StepKey, StepKind, StepUsage};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::drive::{Driver, ESTIMATED, USAGE};
use super::fault::Fault;
use super::fixed::{Fixed, Source};
use super::model::Models;
use super::outage;
use super::stored::StoredModel;
use crate::journal::{Made, hashed};
use crate::provider::elsewhere;
use crate::provider::round::model::{CallFault, ModelCall, ModelRound, usable};

/// The input of such a job. Other members are the door's own.
#[derive(Deserialize)]
struct Asked {
    /// The name of a model of the namespace.
    model: String,
    /// A [`Request`] without its model.
    request: Map<String, Value>,
    /// Whether somebody follows the answer.
    #[serde(default)]
    stream: bool,
}

impl Asked {
    /// The name of the model, and the request, whose model is not yet known.
    fn read(input: &[u8]) -> Result<(String, Request), Fault> {
        let refused = |error: serde_json::Error| Fault::Input(error.to_string());
        let Self { model, mut request, stream } = serde_json::from_slice(input).map_err(refused)?;
        request.insert("model".to_owned(), Value::from(""));
        let request: Request = serde_json::from_value(Value::Object(request)).map_err(refused)?;
        if request.messages.is_empty() {
            return Err(Fault::Input("the request has no messages".to_owned()));
        }
        let stream = stream && request.task.is_chat();
        // The key is that of the step, whatever a client says.
        Ok((model, Request { stream, idempotency_key: None, ..request }))
    }
}

/// What the answers of a job used.
#[derive(Default)]
struct Spent {
    input: u64,
    output: u64,
    estimated: bool,
    /// The model that answered, as its provider names it.
    model: String,
}

impl Driver<'_, '_> {
    /// The job of a contract with `direct: yes`.
    pub(super) async fn direct(mut self) -> Result<Value, Fault> {
        let input = self.work.input.clone();
        let read = elsewhere(self.control.env, input.len(), move || Asked::read(&input)).await;
        let (name, mut request) = read.unwrap_or_else(|| Err(Fault::internal("reading the input was interrupted")))?;
        let fixed = self.fix_direct(&name, request.task).await?;
        request.model.clone_from(&fixed.settings.model);
        let (mut models, mut spent, mut answers) = (None, Spent::default(), Vec::new());
        let mut fault = None;
        for (number, part) in parts(&fixed, request).into_iter().enumerate() {
            match self.called(&fixed, &mut models, (number, part), &mut spent).await {
                Ok(answer) => answers.push(answer),
                Err(why) => {
                    fault = Some(why);
                    break;
                }
            }
        }
        let Spent { input, output, estimated, model } = spent;
        let model = if model.is_empty() { fixed.settings.model.clone() } else { model };
        let measured: [(&str, Value); 3] =
            [("input_tokens", input.into()), ("output_tokens", output.into()), ("model", model.into())];
        self.metadata.extend(measured.map(|(name, value)| (name.to_owned(), value)));
        if estimated {
            self.metadata.insert(USAGE.to_owned(), ESTIMATED.into());
        }
        let seen = models.as_ref().and_then(|models| models.seen.as_ref()?.value());
        self.metadata.extend(seen.map(|seen| ("_models".to_owned(), seen)));
        match fault {
            Some(fault) => Err(fault),
            None => serde_json::to_value(joined(answers)?).map_err(|error| Fault::internal(error.to_string())),
        }
    }

    /// What the job is fixed to: as recorded, or determined now.
    async fn fix_direct(&mut self, name: &str, task: ModelTask) -> Result<Fixed, Fault> {
        let (work, shared) = (self.work, self.shared);
        let make = || async move {
            let mut fixed =
                Fixed::of_direct(&work.agent, (name, task.purpose()), &work.assignment.attachments, shared)?;
            fixed.settings.limits.budget = work.assignment.budget_nanodollars.map(NanoDollars);
            let outcome = serde_json::to_vec(&fixed).map_err(|error| Fault::internal(error.to_string()))?;
            Ok::<_, Fault>(Made { outcome, usage: StepUsage::default() })
        };
        let recorded = self.journal.step(StepKind::Start, StepKey(START.0), make).await?;
        Fixed::read(&recorded)
    }

    /// Makes a call, unless its answer is recorded.
    async fn called(
        &mut self,
        fixed: &Fixed,
        models: &mut Option<Models>,
        (number, request): (usize, Request),
        spent: &mut Spent,
    ) -> Result<Answer, Fault> {
        let step = hashed(&("direct", number));
        let outage = StepKey(Outage::key(Key(step.0)).0);
        while self.journal.peek().await? == Some((StepKind::Sleep, outage)) {
            self.read_outage(outage).await?;
        }
        let outage::Before { outage: before, steps } = std::mem::take(&mut self.before);
        let at = self.journal.next();
        let answered = if self.journal.peek().await?.is_some() {
            let recorded = self.journal.recorded(StepKind::Model, step).await?;
            usable(recorded.ok_or_else(|| Fault::internal("the call is not recorded"))?)
        } else {
            if models.is_none() {
                let mut opened = self.open(fixed).await?;
                opened.all_parts = true;
                *models = Some(opened);
            }
            let models = models.as_ref().ok_or_else(|| Fault::internal("no model was opened"))?;
            let (clock, job) = (Arc::clone(&self.control.env.clock), self.work.assignment.job.to_string());
            let (purse, outage_limit, settings) = (self.purse(), self.outage_limit, &fixed.settings);
            let round = ModelRound { clock: &clock, job: &job, purse: &purse, outage_limit, settings, models };
            // The number of the call if there was no outage.
            let idempotency_key = format!("{job}-{}", at.saturating_sub(steps));
            let call = ModelCall { step, outage, idempotency_key, request: &|| request.clone() };
            round.answer(&mut self.journal, (&call, before), &mut *self.control).await
        };
        let outcome = match answered {
            Ok(outcome) => outcome,
            Err(CallFault::Call(error)) => return Err(Fault::Turn(Failure::Call(error))),
            Err(CallFault::Journal(error)) => return Err(error.into()),
        };
        let read = serde_json::from_slice(&outcome);
        let Recorded { answer, .. } =
            read.map_err(|error| Fault::internal(format!("step {at} is not readable: {error}")))?;
        let CountedUsage { usage, estimated } = used(&fixed.settings, || request, &answer);
        spent.input = spent.input.saturating_add(usage.input);
        spent.output = spent.output.saturating_add(usage.output);
        spent.estimated |= estimated;
        spent.model.clone_from(&answer.model);
        Ok(Answer { usage, ..answer })
    }
}

/// The calls of a request: one, or as many as its texts need.
fn parts(fixed: &Fixed, request: Request) -> Vec<Request> {
    if request.task.is_chat() {
        return vec![request];
    }
    let most = match &fixed.source {
        Source::Stored(models) => {
            models.first().map_or(1, |StoredModel { spec, .. }| atlas_llm::embedding::texts_max(spec))
        }
        Source::Mock | Source::Environment(_) => 1,
    };
    let texts = request.texts();
    if texts.len() <= most || request.task == ModelTask::Rank {
        return vec![request];
    }
    let part = |texts: &[&str]| {
        let texts = texts.iter().map(|text| (*text).to_owned());
        let Request { messages, .. } = Request::embed(request.task, texts);
        Request { messages, ..request.clone() }
    };
    texts.chunks(most.max(1)).map(part).collect()
}

/// The answer of all calls.
fn joined(answers: Vec<Answer>) -> Result<Answer, Fault> {
    let mut answers = answers.into_iter();
    let mut all = answers.next().ok_or_else(|| Fault::internal("there was no call"))?;
    for next in answers {
        all.usage += next.usage;
        let more = next.raw.get(NUMBERS).and_then(Value::as_array).cloned().unwrap_or_default();
        if let Some(Value::Array(numbers)) = all.raw.get_mut(NUMBERS) {
            numbers.extend(more);
        }
        if all.stop == Stop::End {
            all.stop = next.stop;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(input: &str, expected: &Expect) {
        expected.assert_eq(&match Asked::read(input.as_bytes()) {
            Ok((model, request)) => format!("{model}: {}", serde_json::to_string(&request).expect("JSON")),
            Err(fault) => fault.to_string(),
        });
    }

    #[test]
    fn inputs_are_read_or_refused() {
        let said = r#""messages": [{"role": "user", "parts": [{"type": "text", "text": "hi"}]}]"#;
        check(
            &format!(r#"{{"model": "small", "request": {{{said}, "idempotency_key": "x"}}, "stream": true}}"#),
            &expect![[
                r#"small: {"model":"","system":"","messages":[{"role":"user","parts":[{"type":"text","text":"hi"}]}],"tools":[],"tool_choice":"auto","max_tokens":null,"temperature":null,"top_p":null,"top_k":null,"stop":[],"output":null,"reasoning_effort":null,"idempotency_key":null,"stream":true,"extra":{}}"#
            ]],
        );
        check(
            r#"{"model": "small", "request": {"messages": []}}"#,
            &expect!["Input validation: the request has no messages"],
        );
        check(r#"{"model": "small"}"#, &expect!["Input validation: missing field `request` at line 1 column 18"]);
        check(
            r#"{"model": "small", "request": {"messages": 1}}"#,
            &expect!["Input validation: invalid type: integer `1`, expected a sequence"],
        );
    }
}
