//! Journals and their steps.

use atlas_types::{Fold, Journal, Step, StepKind, StepUsage};

use super::enum_field;
use super::table::{DefaultIsAbsent, table};
use crate::proto;

enum_field!(StepKind, proto::StepKind, {
    Start = Start,
    Model = Model,
    Tools = Tools,
    Child = Child,
    Sleep = Sleep,
    Question = Question,
    Intent = Intent,
    Effect = Effect,
    Code = Code,
});

table! {
    "step": Step = Step {
        kind = kind,
        key = key,
        outcome = outcome,
        usage = usage via DefaultIsAbsent,
    }
}

table! {
    "step_usage": StepUsage = StepUsage {
        duration = duration_us,
        tokens_input = tokens_input,
        tokens_output = tokens_output,
        cost_nanodollars = cost_nanodollars,
    }
}

table! {
    "journal": Journal = Journal {
        folds = folds,
        steps = steps,
        folded = folded via DefaultIsAbsent,
    }
}

table! {
    "fold": Fold = Fold {
        upto = upto,
        artifact = artifact,
    }
}
