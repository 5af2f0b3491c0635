//! The vectors of questions that were asked a while ago, so that a repeated question costs nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atlas_types::{Digest, EventSeq, ObjectKey};

/// Most vectors that are kept, each of at most 32 KiB.
const QUESTIONS_MAX: usize = 256;

/// The vector of a question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QuestionVector {
    /// What tells the model apart from those whose vectors do not fit to this one.
    pub(crate) model: String,
    pub(crate) numbers: Vec<f32>,
}

/// A question: the object of the model with its revision, and the digest of the text.
pub(crate) type Question = (ObjectKey, EventSeq, Digest);

/// The questions that were asked last.
#[derive(Debug, Default)]
pub(crate) struct QuestionVectors(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// How often vectors were used or kept.
    uses: u64,
    /// Each with its last use.
    vectors: BTreeMap<Question, (u64, Arc<QuestionVector>)>,
}

impl QuestionVectors {
    /// The vector of a question, if it is kept.
    pub(crate) fn get(&self, question: &Question) -> Option<Arc<QuestionVector>> {
        let mut kept = self.kept();
        kept.uses += 1;
        let uses = kept.uses;
        let (last, vector) = kept.vectors.get_mut(question)?;
        *last = uses;
        Some(vector.clone())
    }

    /// Keeps a vector. The one that was not used for longest makes room.
    pub(crate) fn keep(&self, question: Question, vector: Arc<QuestionVector>) {
        let mut kept = self.kept();
        kept.uses += 1;
        let uses = kept.uses;
        kept.vectors.insert(question, (uses, vector));
        if kept.vectors.len() > QUESTIONS_MAX {
            let oldest = kept.vectors.iter().min_by_key(|(_, (last, _))| *last).map(|(question, _)| question.clone());
            oldest.map(|question| kept.vectors.remove(&question));
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Each change is complete while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use atlas_artifacts::digest_of;
    use atlas_types::{Namespace, ObjectKind, ObjectName};

    use super::*;

    fn question(revision: u64, text: &str) -> Question {
        let (kind, name) = (ObjectKind::new("model").expect("a kind"), ObjectName::new("small").expect("a name"));
        let key = ObjectKey { namespace: Namespace::default_namespace(), kind, name };
        (key, EventSeq(revision), digest_of(text.as_bytes()))
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room() {
        let kept = QuestionVectors::default();
        let vector = Arc::new(QuestionVector { model: "m".to_owned(), numbers: vec![1.0] });
        for number in 0..QUESTIONS_MAX {
            kept.keep(question(1, &number.to_string()), vector.clone());
        }
        assert_eq!(kept.get(&question(1, "0")), Some(vector.clone()));
        kept.keep(question(1, "more"), vector.clone());
        let has = |text: &str| kept.get(&question(1, text)).is_some();
        assert_eq!((has("0"), has("1"), has("2"), has("more")), (true, false, true, true));
        assert_eq!(kept.get(&question(2, "0")), None, "the model was changed");
        // The same question again takes no more room.
        kept.keep(question(1, "more"), vector);
        assert_eq!(kept.kept().vectors.len(), QUESTIONS_MAX);
    }
}
