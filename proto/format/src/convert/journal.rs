//! Journals and their steps.

use std::sync::Arc;

use atlas_types::{Fold, Journal, Micros, Step, StepKey, StepKind, StepUsage};

use super::{EnumField as _, enum_field, fixed, required};
use crate::{FormatError, proto};

enum_field!(StepKind, proto::StepKind, {
    Start = Start,
    Model = Model,
    Tools = Tools,
    Child = Child,
    Sleep = Sleep,
    Question = Question,
    Intent = Intent,
    Effect = Effect,
});

impl From<&Step> for proto::Step {
    fn from(step: &Step) -> Self {
        Self {
            kind: proto::StepKind::from(step.kind).into(),
            key: step.key.0.to_vec(),
            outcome: Some((&step.outcome).into()),
            usage: (step.usage != StepUsage::default()).then(|| step.usage.into()),
        }
    }
}

impl TryFrom<proto::Step> for Step {
    type Error = FormatError;

    fn try_from(step: proto::Step) -> Result<Self, FormatError> {
        Ok(Self {
            kind: StepKind::read("step.kind", step.kind)?,
            key: StepKey(fixed("step.key", &step.key)?),
            outcome: required("step.outcome", step.outcome)?.try_into()?,
            usage: step.usage.map_or_else(StepUsage::default, Into::into),
        })
    }
}

impl From<StepUsage> for proto::StepUsage {
    fn from(usage: StepUsage) -> Self {
        Self {
            duration_us: usage.duration.0,
            tokens_input: usage.tokens_input,
            tokens_output: usage.tokens_output,
            cost_nanodollars: usage.cost_nanodollars,
        }
    }
}

impl From<proto::StepUsage> for StepUsage {
    fn from(usage: proto::StepUsage) -> Self {
        Self {
            duration: Micros(usage.duration_us),
            tokens_input: usage.tokens_input,
            tokens_output: usage.tokens_output,
            cost_nanodollars: usage.cost_nanodollars,
        }
    }
}

impl From<&Journal> for proto::Journal {
    fn from(journal: &Journal) -> Self {
        let fold = |fold: &Fold| proto::Fold { upto: fold.upto, artifact: Some((&fold.artifact).into()) };
        Self {
            folds: journal.folds.iter().map(fold).collect(),
            steps: steps_out(&journal.steps),
            folded: (journal.folded != StepUsage::default()).then(|| journal.folded.into()),
        }
    }
}

impl TryFrom<proto::Journal> for Journal {
    type Error = FormatError;

    fn try_from(journal: proto::Journal) -> Result<Self, FormatError> {
        let fold = |fold: proto::Fold| {
            Ok(Fold { upto: fold.upto, artifact: required("fold.artifact", fold.artifact)?.try_into()? })
        };
        Ok(Self {
            folds: journal.folds.into_iter().map(fold).collect::<Result<_, FormatError>>()?,
            steps: steps_in(journal.steps)?,
            folded: journal.folded.map_or_else(StepUsage::default, Into::into),
        })
    }
}

/// Steps, outward.
pub(crate) fn steps_out(steps: &[Arc<Step>]) -> Vec<proto::Step> {
    steps.iter().map(|step| (&**step).into()).collect()
}

/// Steps, inward.
pub(crate) fn steps_in(steps: Vec<proto::Step>) -> Result<Vec<Arc<Step>>, FormatError> {
    steps.into_iter().map(|step| step.try_into().map(Arc::new)).collect()
}
