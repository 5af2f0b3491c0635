//! Converts pieces of models' answers into the events `delta`, `gap` and `reset` of one follower.

use atlas_artifacts::Pieces;
use atlas_desk::json;
use atlas_types::{Attempt, Delta};

/// One event of a follower.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// `delta`, `gap` or `reset`.
    pub name: &'static str,
    /// The piece, a JSON object.
    pub json: Vec<u8>,
}

/// The answer that a follower receives: its attempt, step and try, and the bytes that the follower has or knows to be missing.
#[derive(Debug, Default)]
pub(super) struct Answer {
    call: Option<(Attempt, u32, u32)>,
    bytes: u64,
}

impl Answer {
    /// The events for some pieces.
    pub(super) fn hear(&mut self, pieces: &Pieces) -> Vec<Piece> {
        pieces.deltas.iter().flat_map(|delta| self.hear_one(pieces.attempt, delta)).collect()
    }

    fn hear_one(&mut self, attempt: Attempt, delta: &Delta) -> Vec<Piece> {
        let call = (attempt, delta.step, delta.try_number);
        let mut told = Vec::new();
        if self.call != Some(call) {
            // Another try of the same step starts the answer over.
            if self.call.is_some_and(|(before, step, _)| (before, step) == (attempt, delta.step)) {
                told.push(Piece { name: "reset", json: object(call, &[]) });
            }
            (self.call, self.bytes) = (Some(call), 0);
        }
        let end = delta.offset.saturating_add(delta.text.len() as u64);
        // The follower has this piece, or a gap was reported for it. One without text only says that another try begins.
        if delta.offset < self.bytes || delta.text.is_empty() && delta.offset == 0 {
            return told;
        }
        if delta.offset > self.bytes {
            let (from, to) = (self.bytes.to_string(), delta.offset.to_string());
            told.push(Piece { name: "gap", json: object(call, &[("from", from.as_bytes()), ("to", to.as_bytes())]) });
        }
        self.bytes = end;
        let mut text = Vec::with_capacity(delta.text.len() + 2);
        json::string(&mut text, &delta.text);
        let offset = delta.offset.to_string();
        told.push(Piece { name: "delta", json: object(call, &[("offset", offset.as_bytes()), ("text", &text)]) });
        told
    }
}

fn object((attempt, step, try_number): (Attempt, u32, u32), more: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = format!("{{\"attempt\":{},\"step\":{step},\"try\":{try_number}", attempt.0).into_bytes();
    for (name, value) in more {
        out.extend_from_slice(format!(",\"{name}\":").as_bytes());
        out.extend_from_slice(value);
    }
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn pieces_gaps_and_new_tries_are_told_in_order() {
        let delta = |step, try_number, offset, text: &str| Delta { step, try_number, offset, text: text.to_owned() };
        let said = [
            (1, delta(1, 1, 0, "He")),
            (1, delta(1, 1, 2, "llo")),
            (1, delta(1, 1, 2, "llo")),
            (1, delta(1, 1, 9, "é")),
            (1, delta(1, 2, 0, "Hi")),
            (1, delta(1, 3, 0, "")),
            (1, delta(2, 1, 3, "x")),
            (2, delta(2, 1, 0, "y")),
        ];
        let mut answer = Answer::default();
        let mut out = String::new();
        for (attempt, delta) in said {
            for piece in answer.hear(&Pieces { attempt: Attempt(attempt), deltas: vec![delta] }) {
                out += &format!("{} {}\n", piece.name, String::from_utf8_lossy(&piece.json));
            }
        }
        expect![[r#"
            delta {"attempt":1,"step":1,"try":1,"offset":0,"text":"He"}
            delta {"attempt":1,"step":1,"try":1,"offset":2,"text":"llo"}
            gap {"attempt":1,"step":1,"try":1,"from":5,"to":9}
            delta {"attempt":1,"step":1,"try":1,"offset":9,"text":"\u00e9"}
            reset {"attempt":1,"step":1,"try":2}
            delta {"attempt":1,"step":1,"try":2,"offset":0,"text":"Hi"}
            reset {"attempt":1,"step":1,"try":3}
            gap {"attempt":1,"step":2,"try":1,"from":0,"to":3}
            delta {"attempt":1,"step":2,"try":1,"offset":3,"text":"x"}
            delta {"attempt":2,"step":2,"try":1,"offset":0,"text":"y"}
        "#]]
        .assert_eq(&out);
    }
}
