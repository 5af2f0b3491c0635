//! Parses server-sent events. Buffers at most one frame of a bounded size.

use crate::failure::Failure;

/// Maximum size of a frame.
const FRAME_BYTES_MAX: usize = 16 << 20;

/// One event of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The id, with which another connection resumes after this event; empty if the server sent none.
    pub(crate) id: String,
    /// The event's name; empty if the server sent none.
    pub(crate) event: String,
    /// The data lines.
    pub(crate) data: String,
}

/// Assembles frames from the received pieces.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    line: Vec<u8>,
    frame: Frame,
}

impl Reader {
    /// Adds a piece of the stream and returns the frames that it completes.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<Vec<Frame>, Failure> {
        let mut done = Vec::new();
        for &byte in piece {
            if byte != b'\n' {
                self.line.push(byte);
                if self.line.len() + self.frame.data.len() > FRAME_BYTES_MAX {
                    return Err(Failure::answer(format!("an event is longer than {FRAME_BYTES_MAX} bytes")));
                }
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line)).into_owned();
            done.extend(self.end_line(&line));
        }
        Ok(done)
    }

    fn end_line(&mut self, line: &str) -> Option<Frame> {
        if line.is_empty() {
            let frame = std::mem::take(&mut self.frame);
            return (!frame.data.is_empty()).then_some(frame);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => value.clone_into(&mut self.frame.id),
            "event" => value.clone_into(&mut self.frame.event),
            "data" => {
                if !self.frame.data.is_empty() {
                    self.frame.data.push('\n');
                }
                self.frame.data.push_str(value);
            }
            // A line that begins with a colon is a comment that keeps the connection alive.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_whole_however_they_are_cut() {
        let stream = b": hello\n\nid: 3\r\nevent: job\ndata: {\"a\":\ndata: 1}\n\ndata:x\n\n";
        for size in [1, 2, 7, stream.len()] {
            let mut reader = Reader::default();
            let frames: Vec<Frame> =
                stream.chunks(size).flat_map(|piece| reader.push(piece).expect("short frames")).collect();
            assert_eq!(frames.len(), 2);
            assert_eq!((frames[0].event.as_str(), frames[0].data.as_str()), ("job", "{\"a\":\n1}"));
            assert_eq!(frames[1].data, "x");
        }
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut reader = Reader::default();
        let piece = vec![b'x'; 1 << 20];
        assert!((0..20).any(|_| reader.push(&piece).is_err()));
    }
}
