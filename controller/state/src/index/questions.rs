//! Questions by namespace and by job, in the order in which they were asked, and their bytes.

use atlas_types::{EventSeq, JobId, Namespace, Question, QuestionId};

use crate::map::Set;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Questions {
    /// All of them.
    pub(crate) all: Set<(Namespace, EventSeq, QuestionId)>,
    /// Those without an end.
    pub(crate) open: Set<(Namespace, EventSeq, QuestionId)>,
    pub(crate) of: Set<(JobId, EventSeq, QuestionId)>,
    pub(crate) bytes: u64,
}

impl Questions {
    pub(super) fn change(&mut self, old: Option<&Question>, new: Option<&Question>) {
        if let Some(old) = old {
            self.all.remove(&place(old));
            self.open.remove(&place(old));
            self.of.remove(&(old.job, old.asked, old.id));
            self.bytes -= old.bytes();
        }
        if let Some(new) = new {
            self.all.insert(place(new));
            self.of.insert((new.job, new.asked, new.id));
            self.bytes += new.bytes();
            if new.is_open() {
                self.open.insert(place(new));
            }
        }
    }
}

fn place(question: &Question) -> (Namespace, EventSeq, QuestionId) {
    (question.namespace.clone(), question.asked, question.id)
}
