//! Tries of calls of limited models.

use atlas_types::{FencingToken, JobId, Namespace};

use super::time::{duration_in, duration_out};
use super::{ConvertError, bounded, name, word};
use crate::limits::MODEL_USES_MAX;
use crate::proto::worker::v1 as pb;
use crate::session::{ModelAsk, ModelUse, ModelUses, PastModelUse};

pub(super) fn ask_out(ask: ModelAsk) -> pb::AskModel {
    let ModelAsk { number, job, token, model, tokens } = ask;
    pb::AskModel { number, job_id: job.0, fencing_token: token.0, model, tokens }
}

pub(super) fn ask_in(ask: pb::AskModel) -> Result<ModelAsk, ConvertError> {
    let pb::AskModel { number, job_id, fencing_token, model, tokens } = ask;
    let model = word("ask_model.model", model)?;
    Ok(ModelAsk { number, job: JobId(job_id), token: FencingToken(fencing_token), model, tokens })
}

pub(super) fn announce_out(uses: ModelUses) -> pb::AnnounceModels {
    let held = uses.held.into_iter().map(|held| pb::ModelUse {
        number: held.number,
        job_id: held.job.0,
        namespace: held.namespace.to_string(),
        model: held.model,
        tokens: held.tokens,
        age: Some(duration_out(held.age)),
    });
    let past = uses.past.into_iter().map(|past| pb::PastModelUse {
        namespace: past.namespace.to_string(),
        model: past.model,
        age: Some(duration_out(past.age)),
        requests: past.requests,
        tokens: past.tokens,
    });
    pb::AnnounceModels { held: held.collect(), past: past.collect() }
}

pub(super) fn announce_in(uses: pb::AnnounceModels) -> Result<ModelUses, ConvertError> {
    bounded("announce_models.held", uses.held.len(), MODEL_USES_MAX)?;
    bounded("announce_models.past", uses.past.len(), MODEL_USES_MAX)?;
    let held = |held: pb::ModelUse| {
        Ok(ModelUse {
            number: held.number,
            job: JobId(held.job_id),
            namespace: name("model_use.namespace", &held.namespace, Namespace::new)?,
            model: word("model_use.model", held.model)?,
            tokens: held.tokens,
            age: duration_in("model_use.age", held.age)?,
        })
    };
    let past = |past: pb::PastModelUse| {
        Ok(PastModelUse {
            namespace: name("past_model_use.namespace", &past.namespace, Namespace::new)?,
            model: word("past_model_use.model", past.model)?,
            age: duration_in("past_model_use.age", past.age)?,
            requests: past.requests,
            tokens: past.tokens,
        })
    };
    Ok(ModelUses {
        held: uses.held.into_iter().map(held).collect::<Result<_, _>>()?,
        past: uses.past.into_iter().map(past).collect::<Result<_, _>>()?,
    })
}
