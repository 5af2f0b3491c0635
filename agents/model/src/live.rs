//! How an answer is followed while it forms: pieces of its text, its thoughts and its tool calls, through a channel that knows only numbered texts
//! and may lose some.
//!
//! Jobs of [`CALL_AGENT`](crate::CALL_AGENT) send their pieces in this form. An answer is a sequence of runs: pieces of one part after the
//! other. Each run has a [`mark`](LiveWriter::write) of its own, and begins with a `RunHead`, a line of JSON, which says how many bytes
//! were written before it. So a reader knows when it has missed something. Only a text at the beginning of the answer has no such line: an answer
//! that is only a text looks like that of any agent.

use serde::{Deserialize, Serialize};

use crate::Delta;

/// Bits of the number of a piece that are the number of its step. Steps of such a job are few.
const STEP_BITS: u32 = 10;
/// Bits that count the runs. The counter begins again after the last.
const RUN_BITS: u32 = 10;
/// Most tool calls of one answer whose pieces are sent as they form. Later calls are in the finished answer only.
pub const LIVE_CALLS_MAX: usize = 4_000;
/// Longest head of a run, in bytes.
const HEAD_BYTES_MAX: usize = 4_096;

/// A part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LivePart {
    Text,
    Reasoning,
    /// A tool call, counted from 0.
    Call(usize),
}

impl LivePart {
    /// None for calls without a live form.
    fn number(self) -> Option<u32> {
        match self {
            Self::Text => Some(0),
            Self::Reasoning => Some(1),
            Self::Call(index) if index < LIVE_CALLS_MAX => u32::try_from(index + 2).ok(),
            Self::Call(_) => None,
        }
    }

    fn of(number: u32) -> Self {
        match number {
            0 => Self::Text,
            1 => Self::Reasoning,
            number => Self::Call(number as usize - 2),
        }
    }
}

/// What a run begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RunHead {
    /// The bytes of the runs before it, with their heads.
    at: u64,
    /// The call that begins with this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<CallHead>,
}

/// A call that begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CallHead {
    id: String,
    name: String,
}

/// Writes the pieces of one try of an answer.
#[derive(Debug, Clone, Default)]
pub struct LiveWriter {
    part: Option<LivePart>,
    run: u32,
    written: u64,
}

impl LiveWriter {
    /// A piece as what is sent: its mark, which [`numbered`] puts into the number of its step, and its text. None if it has no live form.
    pub fn write(&mut self, delta: &Delta) -> Option<(u32, String)> {
        let (part, call, text) = match delta {
            Delta::Text(text) => (LivePart::Text, None, text.as_str()),
            Delta::Reasoning(text) => (LivePart::Reasoning, None, text.as_str()),
            Delta::Call { index, id, name } => {
                (LivePart::Call(*index), Some(CallHead { id: id.clone(), name: name.clone() }), "")
            }
            Delta::Arguments { index, text } => (LivePart::Call(*index), None, text.as_str()),
        };
        let number = part.number()?;
        if text.is_empty() && call.is_none() {
            return None;
        }
        let mut sent = String::new();
        if self.part != Some(part) || call.is_some() {
            if self.part.is_some() {
                self.run = (self.run + 1) & ((1 << RUN_BITS) - 1);
            }
            if self.written > 0 || part != LivePart::Text {
                // Numbers and texts always have a JSON form.
                sent = serde_json::to_string(&RunHead { at: self.written, call }).unwrap_or_default() + "\n";
            }
            self.part = Some(part);
        }
        sent.push_str(text);
        self.written += sent.len() as u64;
        Some((number << RUN_BITS | self.run, sent))
    }
}

/// The number of a piece with a mark, of the answer of a step. Without a mark it is the number of the step, which may be any.
pub fn numbered(step: u32, mark: u32) -> u32 {
    if mark == 0 { step } else { step & ((1 << STEP_BITS) - 1) | mark << STEP_BITS }
}

/// The mark in the number of a piece.
pub fn mark_of(number: u32) -> u32 {
    number >> STEP_BITS
}

/// Something of the answer was lost on the way, or is not in this form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a piece of the answer is missing")]
pub struct MissedPiece;

/// Reads the pieces of one try of an answer.
#[derive(Debug, Clone, Default)]
pub struct LiveReader {
    mark: Option<u32>,
    /// The head of the current run, until it is complete.
    head: Option<String>,
    read: u64,
}

impl LiveReader {
    /// The deltas of a piece. After an error the reader knows nothing of what follows.
    pub fn read(&mut self, mark: u32, text: &str) -> Result<Vec<Delta>, MissedPiece> {
        let part = LivePart::of(mark >> RUN_BITS);
        let before = self.read;
        self.read += text.len() as u64;
        if self.mark != Some(mark) {
            if self.head.is_some() {
                return Err(MissedPiece);
            }
            self.mark = Some(mark);
            if before > 0 || part != LivePart::Text {
                self.head = Some(String::new());
            }
        }
        let mut deltas = Vec::new();
        let mut text = text;
        if let Some(mut head) = self.head.take() {
            let (line, rest) = match text.split_once('\n') {
                Some((line, rest)) => (line, Some(rest)),
                None => (text, None),
            };
            head.push_str(line);
            if head.len() > HEAD_BYTES_MAX {
                return Err(MissedPiece);
            }
            let Some(rest) = rest else {
                self.head = Some(head);
                return Ok(deltas);
            };
            let RunHead { at, call } = serde_json::from_str(&head).map_err(|_| MissedPiece)?;
            // The bytes of all pieces of this run so far are its head and what follows it in this piece.
            let runs_before = self.read - (head.len() + 1 + rest.len()) as u64;
            if at != runs_before {
                return Err(MissedPiece);
            }
            match (part, call) {
                (LivePart::Call(index), Some(CallHead { id, name })) => deltas.push(Delta::Call { index, id, name }),
                (_, None) => {}
                _ => return Err(MissedPiece),
            }
            text = rest;
        }
        if !text.is_empty() {
            let text = text.to_owned();
            deltas.push(match part {
                LivePart::Text => Delta::Text(text),
                LivePart::Reasoning => Delta::Reasoning(text),
                LivePart::Call(index) => Delta::Arguments { index, text },
            });
        }
        Ok(deltas)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The deltas, with neighbours of one part joined.
    fn joined(deltas: impl IntoIterator<Item = Delta>) -> Vec<Delta> {
        let mut all: Vec<Delta> = Vec::new();
        for delta in deltas {
            match (all.last_mut(), delta) {
                (Some(Delta::Text(text)), Delta::Text(more))
                | (Some(Delta::Reasoning(text)), Delta::Reasoning(more)) => {
                    text.push_str(&more);
                }
                (Some(Delta::Arguments { index, text }), Delta::Arguments { index: other, text: more })
                    if *index == other =>
                {
                    text.push_str(&more);
                }
                (_, Delta::Text(text) | Delta::Reasoning(text) | Delta::Arguments { text, .. }) if text.is_empty() => {}
                (_, delta) => all.push(delta),
            }
        }
        all
    }

    fn written(deltas: &[Delta]) -> Vec<(u32, String)> {
        let mut writer = LiveWriter::default();
        deltas.iter().filter_map(|delta| writer.write(delta)).collect()
    }

    fn read(pieces: &[(u32, String)]) -> Result<Vec<Delta>, MissedPiece> {
        let mut reader = LiveReader::default();
        let mut all = Vec::new();
        for (mark, text) in pieces {
            all.extend(reader.read(*mark, text)?);
        }
        Ok(joined(all))
    }

    fn call(index: usize) -> Delta {
        Delta::Call { index, id: format!("c\n{index}"), name: "sum".to_owned() }
    }

    #[test]
    fn a_text_is_sent_as_it_is() {
        let sent = written(&[Delta::Text("Hel".to_owned()), Delta::Text("lo".to_owned())]);
        assert_eq!(sent, [(0, "Hel".to_owned()), (0, "lo".to_owned())]);
    }

    #[test]
    fn the_other_parts_have_heads() {
        let arguments = Delta::Arguments { index: 0, text: "{}".to_owned() };
        let sent = written(&[Delta::Reasoning("a".to_owned()), Delta::Text("b".to_owned()), call(0), arguments]);
        let shown: Vec<String> = sent.iter().map(|(mark, text)| format!("{mark:#x} {text}")).collect();
        expect_test::expect![[r#"
            0x400 {"at":0}
            a
            0x1 {"at":10}
            b
            0x802 {"at":21,"call":{"id":"c\n0","name":"sum"}}

            0x802 {}"#]]
        .assert_eq(&shown.join("\n"));
    }

    #[test]
    fn what_was_lost_is_noticed() {
        let sent = written(&[
            Delta::Text("a".to_owned()),
            Delta::Reasoning("b".to_owned()),
            Delta::Text("c".to_owned()),
            Delta::Reasoning("d".to_owned()),
        ]);
        for lost in 0..3 {
            let mut rest = sent.clone();
            rest.remove(lost);
            assert_eq!(read(&rest), Err(MissedPiece), "{lost}");
        }
        assert_eq!(written(&[call(LIVE_CALLS_MAX)]), []);
        assert_eq!(read(&[(1 << RUN_BITS, "x".repeat(HEAD_BYTES_MAX + 1))]), Err(MissedPiece));
        assert_eq!(read(&[(1 << RUN_BITS, "{}\n".to_owned())]), Err(MissedPiece));
    }

    #[test]
    fn marks_are_in_the_numbers_of_steps() {
        for mark in [0, 5, (LIVE_CALLS_MAX as u32 + 1) << RUN_BITS | 1_023] {
            assert_eq!(mark_of(numbered(7, mark)), mark);
        }
        assert_eq!((numbered(7, 0), numbered(5_000, 0)), (7, 5_000));
    }

    fn delta() -> impl Strategy<Value = Delta> {
        prop_oneof![
            "[a-z\n{}\"é]{0,6}".prop_map(Delta::Text),
            "[a-z\n{}\"é]{0,6}".prop_map(Delta::Reasoning),
            (0_usize..3, "[a-z\n]{0,3}", "[a-z\n]{0,3}").prop_map(|(index, id, name)| Delta::Call { index, id, name }),
            (0_usize..3, "[a-z\n{}\"é]{0,6}").prop_map(|(index, text)| Delta::Arguments { index, text }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_however_it_is_cut(
            deltas in prop::collection::vec(delta(), 0..20),
            cuts in prop::collection::vec(0_usize..5, 0..100),
        ) {
            let mut cuts = cuts.into_iter();
            let mut pieces = Vec::new();
            for (mark, text) in written(&deltas) {
                let cut = text.floor_char_boundary(cuts.next().unwrap_or(0).min(text.len()));
                let (begin, end) = text.split_at(cut);
                pieces.extend([begin, end].map(|part| (mark, part.to_owned())).into_iter().filter(|(_, part)| !part.is_empty()));
            }
            prop_assert_eq!(read(&pieces), Ok(joined(deltas)));
        }
    }
}
