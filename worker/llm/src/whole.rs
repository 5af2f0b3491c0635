//! A decoder for answers that arrive whole and are read at their end. Their readers keep vectors as numbers, not as JSON values.

use atlas_model::{Answer, CallError};

use crate::{Decoder, Event, failure, json};

/// Maximum size of such an answer: 2,048 vectors of 1,024 numbers as decimal text.
const BYTES_MAX: usize = 48 << 20;

/// The decoder; `read` gets the whole body.
pub(crate) struct Whole<R> {
    body: Vec<u8>,
    read: R,
    is_done: bool,
}

impl<R: Fn(&[u8]) -> Result<Answer, CallError> + Send> Whole<R> {
    pub(crate) fn new(read: R) -> Self {
        Self { body: Vec::new(), read, is_done: false }
    }
}

impl<R: Fn(&[u8]) -> Result<Answer, CallError> + Send> Decoder for Whole<R> {
    fn push(&mut self, bytes: &[u8], _out: &mut Vec<Event>) -> Result<(), CallError> {
        if self.body.len().saturating_add(bytes.len()) > BYTES_MAX {
            return Err(failure::answer(format!("the answer is larger than {BYTES_MAX} bytes")));
        }
        self.body.extend_from_slice(bytes);
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<Event>) -> Result<(), CallError> {
        if !std::mem::replace(&mut self.is_done, true) {
            let body = std::mem::take(&mut self.body);
            let text = body.strip_prefix(json::MARK).unwrap_or(&body);
            out.push(Event::Answer(Box::new((self.read)(text)?)));
        }
        Ok(())
    }
}

/// The error of a body that is not what the protocol promises: what it reports, or else the problem and its beginning.
pub(crate) fn refused(body: &[u8], problem: &str) -> CallError {
    match json::parse(body) {
        Ok(value) if failure::is_report(&value) => failure::of_value(&value),
        _ => {
            let head = String::from_utf8_lossy(&body[..body.len().min(200)]);
            failure::answer(format!("{problem}: {head}"))
        }
    }
}
