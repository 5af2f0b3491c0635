//! Results of which the model got only the beginning. It reads the rest with a tool of the loop, which is offered once a result was cut.
//!
//! A replay gets the recorded results, which are whole, so the pages need no record of their own.

use std::collections::VecDeque;

use atlas_model::Tool;
use serde_json::{Value, json};

use crate::{Outcome, Settings};

/// The tool that reads on.
pub(crate) const READ: &str = "read_result";

/// Bytes of results that are kept together. The oldest go first.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// The results that were cut.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pages {
    kept: VecDeque<(u64, String)>,
    bytes: usize,
    /// The number of the last one.
    last: u64,
}

impl Pages {
    /// Whether the model is offered the tool. A tool of the agent that has the name comes first.
    pub(crate) fn are_offered(&self, settings: &Settings) -> bool {
        self.last > 0 && can_offer(settings)
    }

    /// A result as the model gets it: whole if it fits, or the beginning, and where the rest is.
    pub(crate) fn bounded(&mut self, text: String, settings: &Settings) -> String {
        let (bytes, most) = (text.len(), settings.limits.result_bytes);
        if bytes <= most {
            return text;
        }
        let end = text.floor_char_boundary(most);
        let mut told = text[..end].to_owned();
        // A turn that was recorded without pages is replayed with the same words.
        if !settings.judged || !can_offer(settings) || bytes > KEPT_BYTES_MAX {
            told.push_str(&format!("\n[cut: these are the first {most} of {bytes} bytes]"));
            return told;
        }
        let number = self.keep(text);
        let arguments = json!({"result": number, "offset": end});
        told.push_str(&format!(
            "\n[cut: these are the first {end} of {bytes} bytes; the tool {READ} reads on with {arguments}]"
        ));
        told
    }

    fn keep(&mut self, text: String) -> u64 {
        self.last += 1;
        self.bytes += text.len();
        self.kept.push_back((self.last, text));
        while self.bytes > KEPT_BYTES_MAX {
            let Some((_, oldest)) = self.kept.pop_front() else { break };
            self.bytes -= oldest.len();
        }
        self.last
    }

    /// The next page of a result.
    pub(crate) fn read(&self, arguments: &Value, settings: &Settings) -> Outcome {
        let number = arguments["result"].as_u64();
        let Some((_, text)) = self.kept.iter().find(|(kept, _)| Some(*kept) == number) else {
            let known: Vec<String> = self.kept.iter().map(|(number, _)| number.to_string()).collect();
            let text = format!("there is no such result; those that were cut are: {}", known.join(", "));
            return Outcome::error("NoResult", text);
        };
        let bytes = text.len();
        let offset = arguments["offset"].as_u64().and_then(|offset| usize::try_from(offset).ok()).unwrap_or(0);
        if offset >= bytes {
            return Outcome::error("NoResult", format!("the result has {bytes} bytes, and ends before {offset}"));
        }
        let start = text.floor_char_boundary(offset);
        // Quotes and line ends are longer in a message than in the result, so a page is made shorter until it fits.
        let mut most = settings.limits.result_bytes;
        loop {
            let end = text.floor_char_boundary(start.saturating_add(most)).max(text.ceil_char_boundary(start + 1));
            let mut page = json!({"text": text[start..end], "offset": start, "of": bytes});
            if end < bytes {
                page["next_offset"] = end.into();
            }
            if most <= 1 || settings.told(&page).len() <= settings.limits.result_bytes {
                return Outcome::Value(page);
            }
            most /= 2;
        }
    }
}

fn can_offer(settings: &Settings) -> bool {
    !settings.tools.iter().any(|offered| offered.tool.name == READ)
}

/// The tool as the model gets it.
pub(crate) fn tool() -> Tool {
    Tool {
        name: READ.to_owned(),
        description: "Reads on in a result of a tool that was cut. The end of the cut result names the arguments."
            .to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "result": {"type": "integer", "description": "The number of the result."},
                "offset": {"type": "integer", "description": "The byte to begin at."},
            },
            "required": ["result", "offset"],
        }),
    }
}
