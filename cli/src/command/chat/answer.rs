//! The answer of a job as its pieces arrive: no passage twice, and none left out without notice.

use serde::Deserialize;

/// A `delta` or a `reset` of the stream of a job.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Piece {
    attempt: u32,
    step: u32,
    r#try: u32,
    /// Bytes of the answer before this piece.
    offset: u64,
    text: String,
}

/// What to do with a piece.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    Nothing,
    /// Print this text.
    Text(String),
    /// The answer begins again.
    Restart,
}

/// What was received of the answer that forms.
#[derive(Debug, Default)]
pub(super) struct Answer {
    call: Option<(u32, u32, u32)>,
    /// The text of this call so far.
    text: String,
    /// Whether a passage is missing, because this program was not connected while it was sent.
    has_gap: bool,
    bytes: u64,
}

impl Answer {
    /// The news of an event. Call again with the same piece after [`News::Restart`].
    pub(super) fn hear(&mut self, event: &str, piece: &Piece) -> News {
        let call = (piece.attempt, piece.step, piece.r#try);
        if self.call != Some(call) {
            let is_again = self.call.is_some_and(|(attempt, step, _)| attempt != piece.attempt || step == piece.step);
            let had_text = !self.text.is_empty();
            *self = Self { call: Some(call), ..Self::default() };
            if is_again && had_text {
                return News::Restart;
            }
        }
        if event != "delta" {
            return News::Nothing;
        }
        let end = piece.offset.saturating_add(piece.text.len() as u64);
        let known = usize::try_from(self.bytes.saturating_sub(piece.offset)).unwrap_or(usize::MAX);
        let Some(text) = piece.text.get(known..).filter(|text| !text.is_empty()) else { return News::Nothing };
        let mut news = String::new();
        if piece.offset > self.bytes {
            self.has_gap = true;
            news = format!("[{} bytes are missing]", piece.offset - self.bytes);
        }
        self.bytes = end;
        self.text += text;
        News::Text(news + text)
    }

    /// Whether a piece begins the answer after another one.
    pub(super) fn is_next_step(&self, piece: &Piece) -> bool {
        self.call.is_some_and(|(_, step, _)| step != piece.step)
    }

    /// Whether this text was printed in full.
    pub(super) fn is(&self, text: &str) -> bool {
        !self.has_gap && self.text.trim() == text.trim()
    }

    /// Whether it is an object of JSON, as answers of agents with an output schema are.
    pub(super) fn is_data(&self) -> bool {
        self.text.trim_start().starts_with('{')
    }

    /// Whether something of it was received.
    pub(super) fn has_text(&self) -> bool {
        !self.text.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_passage_comes_twice_and_none_is_missed_in_silence() {
        let mut answer = Answer::default();
        let mut out = String::new();
        for (event, attempt, step, r#try, offset, text) in [
            ("delta", 1, 1, 1, 0, "Hel"),
            ("delta", 1, 1, 1, 3, "lo"),
            ("delta", 1, 1, 1, 3, "lo"),
            ("delta", 1, 1, 1, 4, "o wor"),
            ("gap", 1, 1, 1, 0, ""),
            ("delta", 1, 1, 1, 12, "é!"),
            ("delta", 1, 1, 1, 13, "é"),
            ("reset", 1, 1, 2, 0, ""),
            ("delta", 1, 1, 2, 0, "Hi."),
            ("delta", 1, 2, 1, 0, "x"),
            ("delta", 2, 1, 1, 0, "again"),
        ] {
            let piece = Piece { attempt, step, r#try, offset, text: text.to_owned() };
            let mut news = answer.hear(event, &piece);
            if news == News::Restart {
                out += "/";
                news = answer.hear(event, &piece);
            }
            if let News::Text(text) = news {
                out += &format!("<{text}>");
            }
        }
        assert_eq!(out, "<Hel><lo>< wor><[3 bytes are missing]é!>/<Hi.><x>/<again>");
        assert!(!answer.is_data() && answer.is("again\n") && answer.has_text() && !answer.is("other"));
    }
}
