//! Model calls of a run, and those of its searches: for vectors and scores.

use std::sync::atomic::Ordering;

use atlas_graph_run::NodePlace;
use atlas_model::{Answer, CallError, CallErrorKind, Request};
use atlas_turn::cost;
use atlas_turn::record::AnswerOutcome as Recorded;
use atlas_types::StepKey;

use super::host::{Surroundings, other, work_key};
use crate::journal::hashed;
use crate::provider::round::caller::Callable;
use crate::provider::round::model::CallFault;

impl Surroundings<'_> {
    /// A model of a search.
    pub(super) fn search_model(&self, model: &str) -> Result<&Callable, CallError> {
        let found = self.models.as_ref().and_then(|models| models.search(model));
        let text = || format!("there is no model \"{model}\" for searches; the log of the job says why");
        found.ok_or_else(|| CallError::new(CallErrorKind::UnknownModel, text()))
    }

    /// A call for vectors or scores. Equal calls of all nodes are one: the second finds the record of the first.
    pub(super) async fn search_call(
        &self,
        place: NodePlace<'_>,
        model: &str,
        request: Request,
    ) -> Result<Answer, CallError> {
        let models = self.search_model(model)?;
        let request = Request { model: models.0.settings.model.clone(), ..request };
        let key = hashed(&("search", model, &request));
        let mut counted = self.searching.lock().await;
        let is_first = counted.insert(key);
        self.noted(models, (work_key(place, "work"), key), request, is_first).await
    }

    /// Makes a call, and notes what it used if that counts.
    pub(super) async fn noted(
        &self,
        models: &Callable,
        (work, key): (StepKey, StepKey),
        request: Request,
        counts: bool,
    ) -> Result<Answer, CallError> {
        let (fixed, _) = models;
        match self.called(models, key, request.clone()).await {
            Ok(outcome) => {
                let Recorded { answer, place } =
                    serde_json::from_slice(&outcome).map_err(|error| other(error.to_string()))?;
                // Another node has counted it.
                if !counts {
                    return Ok(answer);
                }
                let atlas_turn::CountedUsage { usage, estimated } =
                    atlas_turn::used(&fixed.settings, || request, &answer);
                if estimated {
                    self.tokens.estimated.store(true, Ordering::Relaxed);
                }
                self.tokens.note(work, &usage, cost(&fixed.settings, place, &usage).0);
                Ok(answer)
            }
            Err(CallFault::Call(error)) => Err(error),
            Err(CallFault::Journal(error)) => self.fail(error).await,
        }
    }
}
