//! What jobs keep for their receipts.

use atlas_types::{Answered, AnsweredHow, Evidence, Granted, PolicyRef};

use super::enum_field;
use super::table::{EmptyIsNone, table};
use crate::proto;

enum_field!(AnsweredHow, proto::AnsweredHow, {
    Answered = Answered,
    Defaulted = Defaulted,
    Expired = Expired,
    Cancelled = Cancelled,
});

table! {
    "evidence": Evidence = Evidence {
        policies = policies,
        grants = grants,
        answers = answers,
    }
}

table! {
    "policy": PolicyRef = PolicyRef {
        name = name,
        revision = revision,
        digest = digest,
    }
}

table! {
    "granted": Granted = GrantedLease {
        attempt = attempt,
        node = node_id,
        at = at_us,
    }
}

table! {
    "answered": Answered = EndedQuestion {
        question = question_id,
        step = step,
        by = principal via EmptyIsNone,
        how = how,
        at = at_us,
    }
}
