//! Commands of a chat: lines that begin with a dot.

use crate::distance::nearest;

/// What begins and ends a message of several lines.
const BLOCK: &str = ":::";

/// What a line means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// An empty line.
    Nothing,
    Message(String),
    Command(Command),
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Help,
    Info,
    /// Talks with another model; lists them without a name.
    Model(Option<String>),
    /// Talks with another agent; lists them without a name.
    Agent(Option<String>),
    /// Goes on with another conversation; lists them without an id.
    Conversation(Option<String>),
    /// Begins another conversation, under this id or one that is made up.
    New(Option<String>),
    /// Removes what was said.
    Empty,
    /// Sends files: what comes after the command.
    File(String),
    Continue,
    Regenerate,
    Copy,
    /// Sets one setting, or shows them all without a name.
    Set(Option<(String, String)>),
    /// Writes the next message in an editor.
    Edit,
    /// Writes the conversation into a file.
    Save(Option<String>),
    Exit,
}

/// What there is in a chat, for the commands that need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// It is with a model, not with an agent.
    pub has_model: bool,
    /// The conversation has messages that were answered.
    pub has_turns: bool,
    /// An answer was seen.
    pub has_answer: bool,
}

/// What a command needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    Model,
    Turns,
    Answer,
}

/// A command for `.help` and for completion.
#[derive(Debug, Clone, Copy)]
pub struct CommandRow {
    /// Its name, with the dot.
    pub name: &'static str,
    /// What may follow; empty if nothing does.
    pub arguments: &'static str,
    /// What it does.
    pub does: &'static str,
    needs: Needs,
}

const fn row(name: &'static str, arguments: &'static str, needs: Needs, does: &'static str) -> CommandRow {
    CommandRow { name, arguments, does, needs }
}

const ROWS: [CommandRow; 16] = [
    row(".help", "", Needs::Nothing, "lists the commands"),
    row(".info", "", Needs::Nothing, "shows whom you talk with, the conversation and the settings"),
    row(".model", "[NAME]", Needs::Nothing, "talks with a model, or lists the models"),
    row(".agent", "[NAME]", Needs::Nothing, "talks with an agent, or lists the agents"),
    row(".conversation", "[ID]", Needs::Nothing, "goes on with another conversation, or lists the latest"),
    row(".new", "[ID]", Needs::Nothing, "begins another conversation; this one is kept"),
    row(".empty", "", Needs::Turns, "removes all messages of this conversation"),
    row(".file", "FILE… [-- TEXT]", Needs::Nothing, "sends files, folders and images; %% is the last answer"),
    row(".continue", "", Needs::Answer, "lets the last answer go on"),
    row(".regenerate", "", Needs::Turns, "asks the last question again, in place of its answer"),
    row(".copy", "", Needs::Answer, "copies the last answer to the clipboard"),
    row(".set", "[NAME VALUE]", Needs::Model, "sets temperature, instructions and others; null unsets"),
    row(".edit", "", Needs::Nothing, "writes the next message in your editor"),
    row(".save", "[FILE]", Needs::Turns, "writes the conversation as Markdown, or as JSON if FILE ends in .json"),
    row(".export", "[FILE]", Needs::Turns, "the same as .save"),
    row(".exit", "", Needs::Nothing, "leaves, as Ctrl+D does"),
];

/// The commands that can be used now.
pub fn command_rows(standing: Standing) -> impl Iterator<Item = &'static CommandRow> {
    ROWS.iter().filter(move |row| row.missing(standing).is_none())
}

impl CommandRow {
    /// Why it cannot be used now.
    fn missing(&self, standing: Standing) -> Option<&'static str> {
        match self.needs {
            Needs::Model if !standing.has_model => {
                Some("an agent has its own settings; .model NAME talks with a model")
            }
            Needs::Turns if !standing.has_turns => Some("nothing was said yet in this conversation"),
            Needs::Answer if !standing.has_answer => Some("there is no answer yet"),
            _ => None,
        }
    }
}

/// Reads a line, or the lines of a message. The error is for the person who typed it.
pub fn parse(text: &str, standing: Standing) -> Result<Input, String> {
    let text = text.trim_end();
    if text.trim().is_empty() {
        return Ok(Input::Nothing);
    }
    if starts_block(text) {
        let inner = text.trim_start().trim_start_matches(BLOCK);
        let inner = inner.strip_suffix(BLOCK).unwrap_or(inner).trim_matches('\n');
        let is_empty = inner.trim().is_empty();
        return Ok(if is_empty { Input::Nothing } else { Input::Message(inner.to_owned()) });
    }
    let is_command = text.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
    if !is_command {
        return Ok(Input::Message(text.to_owned()));
    }
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let Some(row) = ROWS.iter().find(|row| row.name == name) else {
        let meant = nearest(name, ROWS.iter().map(|row| row.name));
        let hint = meant.map(|meant| format!(", did you mean {meant}?")).unwrap_or_default();
        return Err(format!("unknown command {name}{hint} (.help lists them)"));
    };
    if let Some(why) = row.missing(standing) {
        return Err(format!("{name} cannot be used now: {why}"));
    }
    if row.arguments.is_empty() && !rest.is_empty() {
        return Err(format!("{name} takes nothing after it"));
    }
    let one = || match rest.split_whitespace().collect::<Vec<_>>()[..] {
        [] => Ok(None),
        [word] => Ok(Some(word.to_owned())),
        _ => Err(format!("{name} takes one word: {name} {}", row.arguments)),
    };
    Ok(Input::Command(match name {
        ".help" => Command::Help,
        ".info" => Command::Info,
        ".model" => Command::Model(one()?),
        ".agent" => Command::Agent(one()?),
        ".conversation" => Command::Conversation(one()?),
        ".new" => Command::New(one()?),
        ".empty" => Command::Empty,
        ".file" if rest.is_empty() => return Err(format!("which files? .file {}", row.arguments)),
        ".file" => Command::File(rest.to_owned()),
        ".continue" => Command::Continue,
        ".regenerate" => Command::Regenerate,
        ".copy" => Command::Copy,
        ".set" if rest.is_empty() => Command::Set(None),
        ".set" => {
            let (key, value) = rest.split_once(char::is_whitespace).ok_or_else(|| {
                format!("{name} takes a name and a value: {name} {rest} VALUE, or {name} {rest} null")
            })?;
            Command::Set(Some((key.to_owned(), value.trim().to_owned())))
        }
        ".edit" => Command::Edit,
        ".save" | ".export" => Command::Save(Some(rest.to_owned()).filter(|rest| !rest.is_empty())),
        _ => Command::Exit,
    }))
}

/// Whether a text begins a message of several lines, which another `:::` ends.
pub fn starts_block(text: &str) -> bool {
    text.trim_start().starts_with(BLOCK)
}

/// Whether a text is a message of several lines as a whole.
pub(crate) fn is_closed(text: &str) -> bool {
    text.trim_start().get(BLOCK.len()..).is_some_and(|rest| rest.trim_end().ends_with(BLOCK))
}

/// Adds a line to those before it. None until the message is complete.
pub fn joined(before: &mut Option<String>, line: &str) -> Option<String> {
    let text = match before.take() {
        Some(text) => format!("{text}\n{line}"),
        None => line.to_owned(),
    };
    if starts_block(&text) && !is_closed(&text) {
        *before = Some(text);
        return None;
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Standing = Standing { has_model: true, has_turns: true, has_answer: true };

    fn command(line: &str) -> Command {
        match parse(line, ALL) {
            Ok(Input::Command(command)) => command,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn lines_are_messages_or_commands() {
        let message = |text: &str| Ok(Input::Message(text.to_owned()));
        assert_eq!(parse("  \n", ALL), Ok(Input::Nothing));
        assert_eq!(parse("hello\n", ALL), message("hello"));
        assert_eq!(parse("... and then?", ALL), message("... and then?"));
        assert_eq!(parse(".5 is a half", ALL), message(".5 is a half"));
        assert_eq!(parse(":::\n.help\nmore\n:::", ALL), message(".help\nmore"));
        assert_eq!(parse("::: one :::", ALL), message(" one "));
        assert_eq!(parse(":::\n:::", ALL), Ok(Input::Nothing));
        assert_eq!(command(".model fast"), Command::Model(Some("fast".to_owned())));
        assert_eq!(command(".model"), Command::Model(None));
        assert_eq!(command(".file a.txt -- What is it?"), Command::File("a.txt -- What is it?".to_owned()));
        assert_eq!(command(".set top_p 0.5"), Command::Set(Some(("top_p".to_owned(), "0.5".to_owned()))));
        assert_eq!(command(".export out.json"), Command::Save(Some("out.json".to_owned())));
        assert_eq!(command(".exit"), Command::Exit);
        for row in ROWS.iter().filter(|row| !row.arguments.starts_with('F')) {
            command(row.name);
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let refused = |line: &str, standing| parse(line, standing).expect_err("refused");
        assert_eq!(refused(".modle x", ALL), "unknown command .modle, did you mean .model? (.help lists them)");
        assert_eq!(refused(".xyzzy", ALL), "unknown command .xyzzy (.help lists them)");
        assert_eq!(refused(".help me", ALL), ".help takes nothing after it");
        assert_eq!(refused(".new a b", ALL), ".new takes one word: .new [ID]");
        assert!(refused(".set top_p", ALL).starts_with(".set takes a name and a value"));
        assert!(refused(".file", ALL).starts_with("which files?"));
        let none = Standing::default();
        assert_eq!(refused(".copy", none), ".copy cannot be used now: there is no answer yet");
        assert!(refused(".regenerate", none).contains("nothing was said yet"));
        assert!(refused(".set top_p 1", none).contains("an agent has its own settings"));
        assert!(command_rows(none).count() < command_rows(ALL).count());
    }

    #[test]
    fn lines_of_a_block_are_joined() {
        let mut before = None;
        assert_eq!(joined(&mut before, "one").as_deref(), Some("one"));
        assert_eq!(joined(&mut before, ":::"), None);
        assert_eq!(joined(&mut before, "two"), None);
        assert_eq!(joined(&mut before, ":::").as_deref(), Some(":::\ntwo\n:::"));
        assert_eq!(joined(&mut before, "::: a :::").as_deref(), Some("::: a :::"));
        assert_eq!(before, None);
    }
}
