//! Pieces of models' answers as text for a person, who must never read a passage twice or miss one without being told.

use serde::Deserialize;

use crate::client::Client;
use crate::failure::Failure;

/// A `delta` or a `reset` of the stream of a job.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Piece {
    attempt: u32,
    step: u32,
    r#try: u32,
    /// Bytes of the answer before this piece.
    offset: u64,
    text: String,
}

/// What was printed so far.
///
/// It compares offsets and does not rely on the events `gap` and `reset`: after a broken connection, the controller does not know
/// what an earlier one has sent.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    call: Option<(u32, u32, u32)>,
    /// Bytes of the answer that were printed, or reported as missing.
    bytes: u64,
    mid_line: bool,
}

impl Printed {
    /// The text to print for an event of the stream, which may be empty.
    pub(crate) fn hear(&mut self, event: &str, piece: &Piece) -> String {
        let mut out = String::new();
        let call = (piece.attempt, piece.step, piece.r#try);
        if self.call != Some(call) {
            out += self.end_line();
            match self.call {
                Some((attempt, _, _)) if attempt != piece.attempt => {
                    out += &format!("[attempt {} begins]\n", piece.attempt);
                }
                Some((_, step, _)) if step == piece.step => out += "[the model's answer starts over]\n",
                _ => {}
            }
            (self.call, self.bytes) = (Some(call), 0);
        }
        if event != "delta" {
            return out;
        }
        let end = piece.offset.saturating_add(piece.text.len() as u64);
        let known = usize::try_from(self.bytes.saturating_sub(piece.offset)).unwrap_or(usize::MAX);
        // A piece that was printed in part comes from another connection; its rest begins at a character.
        let Some(text) = piece.text.get(known..).filter(|text| !text.is_empty()) else { return out };
        if piece.offset > self.bytes {
            out += &format!("[{} bytes are missing]", piece.offset - self.bytes);
        }
        self.bytes = end;
        self.mid_line = !text.ends_with('\n');
        out + text
    }

    /// What ends an unfinished line, before something else is printed.
    pub(crate) fn end_line(&mut self) -> &'static str {
        if std::mem::take(&mut self.mid_line) { "\n" } else { "" }
    }
}

/// Follows the log lines and the pieces of a job until it has ended. `each` gets the event's name and its data.
pub(crate) async fn follow(
    client: &Client,
    id: &str,
    mut each: impl FnMut(&str, &str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let path = ["api", "jobs", id, "logs"];
    client.events(&path, &[("deltas", "true")], |frame| each(&frame.name, &frame.data).map(|()| true)).await
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn no_passage_is_printed_twice_and_none_is_left_out_in_silence() {
        let mut printed = Printed::default();
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
            ("delta", 1, 1, 2, 0, "Hi\n"),
            ("delta", 1, 2, 1, 2, "x"),
            ("delta", 2, 1, 1, 0, "again"),
        ] {
            out += &printed.hear(event, &Piece { attempt, step, r#try, offset, text: text.to_owned() });
        }
        out += printed.end_line();
        out += printed.end_line();
        expect![[r#"
            Hello wor[3 bytes are missing]é!
            [the model's answer starts over]
            Hi
            [2 bytes are missing]x
            [attempt 2 begins]
            again
        "#]]
        .assert_eq(&out);
    }
}
