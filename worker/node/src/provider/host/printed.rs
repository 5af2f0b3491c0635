//! What an agent prints.

use std::io::{self, PipeReader};

use atlas_types::StreamKind;

use crate::provider::Control;
use crate::provider::io_loop::{ReadResult, Source};
use crate::texts::Lines;

/// A stream of printed lines.
pub(super) struct Printed {
    pub(super) source: Source,
    lines: Lines,
    level: &'static str,
}

impl Printed {
    pub(super) fn new(pipe: PipeReader, level: &'static str) -> io::Result<Self> {
        Ok(Self { source: Source::new(pipe)?, lines: Lines::default(), level })
    }

    /// Passes on available lines, up to a limit, so that a flood of lines does not delay the answer or the deadline.
    pub(super) async fn read(&mut self, control: &mut Control<'_>) {
        let mut bytes = Vec::new();
        for _ in 0..8 {
            if !matches!(self.source.read(&mut bytes), ReadResult::Bytes(n) if n == 64 << 10) {
                break;
            }
        }
        if !bytes.is_empty() && control.listens() {
            for line in self.lines.push(&bytes) {
                control.say(StreamKind::Log, self.level, line).await;
            }
        }
    }

    pub(super) async fn finish(&mut self, control: &mut Control<'_>) {
        self.read(control).await;
        if let Some(line) = self.lines.finish() {
            control.say(StreamKind::Log, self.level, line).await;
        }
    }
}
