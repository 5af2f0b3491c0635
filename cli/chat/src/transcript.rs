//! What was said as a document: Markdown for people, and messages as OpenAI's interface has them for programs.

use serde_json::{Value, json};

/// Most characters of arguments and results in Markdown; data has them in full.
const SHOWN_MAX: usize = 4_000;

/// A part of what was said.
#[derive(Debug, Clone, PartialEq)]
pub enum TranscriptEntry {
    /// What the model is told before the conversation.
    System(String),
    /// A message of a person or program.
    User { text: String, images: Vec<Value> },
    /// An answer, with the tools that the model called.
    Assistant { text: String, calls: Vec<ToolUse> },
    /// What a tool returned.
    Result { call: String, name: String, text: String, failed: bool },
    /// What happened besides, in a sentence.
    Note(String),
}

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolUse {
    /// Known to the result by this id.
    pub id: String,
    pub name: String,
    pub arguments: Value,
}

/// Markdown under a title. Arguments and results that are long are cut, and say how much is missing.
pub fn markdown(title: &str, entries: &[TranscriptEntry]) -> String {
    let mut text = format!("# {}\n", title.replace('\n', " "));
    for entry in entries {
        match entry {
            TranscriptEntry::System(system) => text += &format!("\n## System\n\n{}\n", system.trim_end()),
            TranscriptEntry::User { text: said, images } => {
                text += &format!("\n## User\n\n{}\n", said.trim_end());
                for image in images {
                    let mime = image["mime_type"].as_str().unwrap_or("image");
                    text += &format!("\n(an image: {mime})\n");
                }
            }
            TranscriptEntry::Assistant { text: said, calls } => {
                text += "\n## Assistant\n";
                if !said.trim().is_empty() {
                    text += &format!("\n{}\n", said.trim_end());
                }
                for ToolUse { name, arguments, .. } in calls {
                    text += &format!("\nCalls `{name}`:\n\n{}", fenced("json", &pretty(arguments)));
                }
            }
            TranscriptEntry::Result { name, text: result, failed, .. } => {
                let what = if *failed { "failed" } else { "returned" };
                text += &format!("\n`{name}` {what}:\n\n{}", fenced("", result));
            }
            TranscriptEntry::Note(note) => text += &format!("\n*{}*\n", note.replace('\n', " ")),
        }
    }
    text
}

/// The messages of OpenAI's chat completions: `{"messages": […]}`.
pub fn openai(entries: &[TranscriptEntry]) -> Value {
    let messages: Vec<Value> = entries.iter().filter_map(message).collect();
    json!({ "messages": messages })
}

fn message(entry: &TranscriptEntry) -> Option<Value> {
    Some(match entry {
        TranscriptEntry::System(text) => json!({"role": "system", "content": text}),
        TranscriptEntry::User { text, images } if images.is_empty() => json!({"role": "user", "content": text}),
        TranscriptEntry::User { text, images } => {
            let mut parts = vec![json!({"type": "text", "text": text})];
            parts.extend(images.iter().map(|image| {
                let part = |name: &str| image[name].as_str().unwrap_or_default();
                let url = format!("data:{};base64,{}", part("mime_type"), part("data"));
                json!({"type": "image_url", "image_url": {"url": url}})
            }));
            json!({"role": "user", "content": parts})
        }
        TranscriptEntry::Assistant { text, calls } => {
            let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { json!(text) };
            let mut message = json!({"role": "assistant", "content": content});
            if !calls.is_empty() {
                let call = |call: &ToolUse| {
                    let arguments = call.arguments.as_str().map_or_else(|| call.arguments.to_string(), str::to_owned);
                    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
                };
                message["tool_calls"] = calls.iter().map(call).collect();
            }
            message
        }
        TranscriptEntry::Result { call, text, .. } => json!({"role": "tool", "tool_call_id": call, "content": text}),
        TranscriptEntry::Note(_) => return None,
    })
}

fn pretty(value: &Value) -> String {
    value.as_str().map_or_else(|| format!("{value:#}"), str::to_owned)
}

/// A block of code whose fence is longer than those inside.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.lines().map(|line| line.trim_start().chars().take_while(|c| *c == '`').count()).max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    let mut shown: String = text.chars().take(SHOWN_MAX).collect();
    let left = text.chars().count() - shown.chars().count();
    if left > 0 {
        shown += &format!("\n… ({left} more characters)");
    }
    format!("{fence}{language}\n{}\n{fence}\n", shown.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn entries() -> Vec<TranscriptEntry> {
        let image = json!({"mime_type": "image/png", "data": "AA=="});
        let call = ToolUse { id: "c1".to_owned(), name: "clock".to_owned(), arguments: json!({"zone": "UTC"}) };
        vec![
            TranscriptEntry::System("Be brief.\n".to_owned()),
            TranscriptEntry::User { text: "What time is it?".to_owned(), images: vec![image] },
            TranscriptEntry::Assistant { text: String::new(), calls: vec![call] },
            TranscriptEntry::Result {
                call: "c1".to_owned(),
                name: "clock".to_owned(),
                text: "```\n12:00\n```".to_owned(),
                failed: false,
            },
            TranscriptEntry::Note("the job waited for its provider".to_owned()),
            TranscriptEntry::Assistant { text: "Noon.".to_owned(), calls: Vec::new() },
        ]
    }

    #[test]
    fn people_read_markdown() {
        expect![[r#"
            # job-1

            ## System

            Be brief.

            ## User

            What time is it?

            (an image: image/png)

            ## Assistant

            Calls `clock`:

            ```json
            {
              "zone": "UTC"
            }
            ```

            `clock` returned:

            ````
            ```
            12:00
            ```
            ````

            *the job waited for its provider*

            ## Assistant

            Noon.
        "#]]
        .assert_eq(&markdown("job-1", &entries()));
        let long = TranscriptEntry::Result {
            call: "c".to_owned(),
            name: "n".to_owned(),
            text: "x".repeat(SHOWN_MAX + 5),
            failed: true,
        };
        assert!(markdown("t", &[long]).contains("`n` failed:") && markdown("t", &entries()).len() < SHOWN_MAX);
    }

    #[test]
    fn programs_read_messages() {
        let value = openai(&entries());
        let messages = value["messages"].as_array().expect("a list");
        assert_eq!(messages.len(), 5);
        assert_eq!(messages[1]["content"][1]["image_url"]["url"], "data:image/png;base64,AA==");
        assert_eq!(messages[2]["tool_calls"][0]["function"]["arguments"], r#"{"zone":"UTC"}"#);
        assert_eq!(messages[3], json!({"role": "tool", "tool_call_id": "c1", "content": "```\n12:00\n```"}));
        assert_eq!(messages[4], json!({"role": "assistant", "content": "Noon."}));
    }
}
