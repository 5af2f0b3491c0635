//! Personas: a text that says how a model answers, with settings above it.

use std::collections::BTreeMap;

use crate::substitution::substitute;
use crate::yaml::{self, FileError, FilePlace, Node};

/// The mark in a text that the question replaces.
const INPUT: &str = "__INPUT__";
const EXAMPLE_INPUT: &str = "### INPUT:";
const EXAMPLE_OUTPUT: &str = "### OUTPUT:";
/// The size of a file.
const BYTES_MAX: usize = 1 << 20;

/// A persona: what a file says.
#[derive(Debug, Clone, PartialEq)]
pub struct Persona {
    /// Its name: that of its file.
    pub name: String,
    /// The text that says how the model answers; it may be empty.
    pub text: String,
    /// The model that answers; none is that of the session.
    pub model: Option<String>,
    /// None is the default of the model.
    pub temperature: Option<f64>,
    /// None is the default of the model.
    pub top_p: Option<f64>,
    /// The tools that the model may use, or `all`. None says nothing about them, and an empty list takes all away.
    pub enabled_tools: Option<Vec<String>>,
    /// The MCP servers that the model may use, in the same form.
    pub enabled_mcp_servers: Option<Vec<String>>,
    /// Whether the model goes on by itself while it has tasks left.
    pub auto_continue: Option<bool>,
    /// How many times it goes on.
    pub max_auto_continues: Option<u64>,
    /// Whether the model is asked to keep a list of its tasks.
    pub inject_todo_instructions: Option<bool>,
    /// What the model is asked when it goes on.
    pub continuation_prompt: Option<String>,
    /// Names above the text that no setting has, and where they are: the caller warns of them.
    pub unknown: Vec<(String, FilePlace)>,
}

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The person who asks.
    User,
    /// The model.
    Assistant,
}

/// What a model gets with a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonaPrompt {
    /// The system text, if there is one.
    pub system: Option<String>,
    /// The messages: examples, then the question.
    pub messages: Vec<(Speaker, String)>,
}

impl Persona {
    /// Reads a Markdown file: settings in YAML between two lines of three or more dashes at its start, and the text below them. Both are
    /// optional, and at most 1 MiB together.
    ///
    /// A setting `prompt` is the text where there is none below.
    pub fn parse(name: &str, file: &str) -> Result<Self, FileError> {
        if file.len() > BYTES_MAX {
            let problem = format!("a persona has at most {} KiB", BYTES_MAX >> 10);
            return Err(FileError::new(FilePlace { line: 1, column: 1 }, problem));
        }
        let file = file.strip_prefix('\u{feff}').unwrap_or(file);
        let (header, text) = split(file);
        let mut persona = Self::empty(name, text.trim());
        if let Some(header) = header {
            persona.read(header)?;
        }
        Ok(persona)
    }

    fn empty(name: &str, text: &str) -> Self {
        Self {
            name: name.to_owned(),
            text: text.to_owned(),
            model: None,
            temperature: None,
            top_p: None,
            enabled_tools: None,
            enabled_mcp_servers: None,
            auto_continue: None,
            max_auto_continues: None,
            inject_todo_instructions: None,
            continuation_prompt: None,
            unknown: Vec::new(),
        }
    }

    fn read(&mut self, header: &str) -> Result<(), FileError> {
        let root = yaml::read(header, 1)?;
        if root.is_null() {
            return Ok(());
        }
        let what = "what is between the lines of dashes (begin with an empty line if they are rules in the text)";
        for (name, value, place) in root.members(what)? {
            if value.is_null() {
                continue;
            }
            let quoted = format!("\"{name}\"");
            match name {
                // The name is that of the file.
                "name" => {}
                "model" => self.model = Some(value.text(&quoted)?.to_owned()),
                "temperature" => self.temperature = Some(number(value, &quoted)?),
                "top_p" => self.top_p = Some(number(value, &quoted)?),
                "enabled_tools" => self.enabled_tools = Some(names(value, &quoted)?),
                "enabled_mcp_servers" => self.enabled_mcp_servers = Some(names(value, &quoted)?),
                "prompt" if self.text.is_empty() => self.text = value.text(&quoted)?.trim().to_owned(),
                "prompt" => {}
                "auto_continue" => self.auto_continue = Some(value.boolean(&quoted)?),
                "max_auto_continues" => {
                    let count = value.text(&quoted)?.parse();
                    let count = count.map_err(|_| FileError::new(value.place, format!("{quoted} is a count")))?;
                    self.max_auto_continues = Some(count);
                }
                "inject_todo_instructions" => self.inject_todo_instructions = Some(value.boolean(&quoted)?),
                "continuation_prompt" => self.continuation_prompt = Some(value.text(&quoted)?.to_owned()),
                _ => self.unknown.push((name.to_owned(), place)),
            }
        }
        Ok(())
    }

    /// What the model gets with a question. `values` are those of [`SPECIAL_VARIABLES`](crate::SPECIAL_VARIABLES), and of others that the
    /// caller knows; variables without a value stay as they are written, and so does what looks like one in the question.
    pub fn prompt(&self, question: &str, values: &BTreeMap<String, String>) -> PersonaPrompt {
        let value = |name: &str| values.get(name).map(String::as_str);
        if self.text.is_empty() {
            return PersonaPrompt { system: None, messages: vec![(Speaker::User, question.to_owned())] };
        }
        if self.text.contains(INPUT) {
            let parts: Vec<String> = self.text.split(INPUT).map(|part| substitute(part, value)).collect();
            return PersonaPrompt { system: None, messages: vec![(Speaker::User, parts.join(question))] };
        }
        let (system, examples) = examples(&self.text).unwrap_or((self.text.clone(), Vec::new()));
        let mut messages = Vec::with_capacity(examples.len() * 2 + 1);
        for (input, output) in examples {
            messages.push((Speaker::User, substitute(&input, value)));
            messages.push((Speaker::Assistant, substitute(&output, value)));
        }
        messages.push((Speaker::User, question.to_owned()));
        let system = Some(substitute(&system, value)).filter(|system| !system.is_empty());
        PersonaPrompt { system, messages }
    }
}

/// The settings above the text, if the file begins with them, and the text.
fn split(file: &str) -> (Option<&str>, &str) {
    let is_dashes = |line: &str| {
        let line = line.trim_end();
        line.len() >= 3 && line.bytes().all(|byte| byte == b'-')
    };
    let mut lines = file.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if !is_dashes(first) {
        return (None, file);
    }
    let mut end = first.len();
    for line in lines {
        if is_dashes(line) {
            return (file.get(first.len()..end), file.get(end + line.len()..).unwrap_or_default());
        }
        end += line.len();
    }
    (None, file)
}

/// The system text and the examples below it; none if the marks are not in pairs.
fn examples(text: &str) -> Option<(String, Vec<(String, String)>)> {
    let mut system = String::new();
    let mut parts: Vec<String> = Vec::new();
    for line in text.split_inclusive('\n') {
        let next = if parts.len().is_multiple_of(2) { EXAMPLE_INPUT } else { EXAMPLE_OUTPUT };
        let other = if parts.len().is_multiple_of(2) { EXAMPLE_OUTPUT } else { EXAMPLE_INPUT };
        if let Some(rest) = line.strip_prefix(next) {
            parts.push(rest.to_owned());
        } else if line.starts_with(other) {
            return None;
        } else {
            parts.last_mut().unwrap_or(&mut system).push_str(line);
        }
    }
    if parts.is_empty() || !parts.len().is_multiple_of(2) {
        return None;
    }
    let trimmed = |text: &String| text.trim().to_owned();
    let pairs = parts.chunks_exact(2).filter_map(|pair| Some((trimmed(pair.first()?), trimmed(pair.last()?))));
    Some((system.trim().to_owned(), pairs.collect()))
}

fn number(value: &Node, what: &str) -> Result<f64, FileError> {
    let number = value.text(what)?.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| FileError::new(value.place, format!("{what} is a number")))
}

/// Names in a list, or in a text with commas.
fn names(value: &Node, what: &str) -> Result<Vec<String>, FileError> {
    let texts = if value.is_list() {
        value.list(what)?.iter().map(|node| node.text("a name")).collect::<Result<Vec<_>, _>>()?
    } else {
        value.text(what)?.split(',').collect()
    };
    Ok(texts.into_iter().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests;
