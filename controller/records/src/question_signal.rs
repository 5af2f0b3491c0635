//! Wakes those who wait for questions.

use atlas_types::{Event, EventRecord};
use tokio::sync::watch;

/// Tells when a question is asked or ends.
pub struct QuestionSignal(watch::Sender<()>);

impl Default for QuestionSignal {
    fn default() -> Self {
        Self(watch::Sender::new(()))
    }
}

impl QuestionSignal {
    /// Wakes with the next question that is asked or ends.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }

    /// Wakes whoever waits, if one of the events is about a question.
    pub fn note(&self, events: &[EventRecord]) {
        let is_one =
            |record: &EventRecord| matches!(record.event, Event::QuestionAsked { .. } | Event::QuestionEnded { .. });
        if events.iter().any(is_one) {
            self.note_all();
        }
    }

    /// Wakes whoever waits: events were missed.
    pub fn note_all(&self) {
        self.0.send_replace(());
    }
}
