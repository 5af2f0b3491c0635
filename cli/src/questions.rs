//! Questions of jobs: read from the API, and put to the person at the terminal.

use std::io::IsTerminal as _;
use std::time::Duration;

use atlas_api::types::Job;
use atlas_env::Env;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::answers;
use crate::client::Client;
use crate::confirm;
use crate::context::Context;
use crate::ending;
use crate::failure::Failure;
use crate::words;

/// A question as the API shows it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Question {
    pub(crate) id: String,
    pub(crate) job: String,
    pub(crate) kind: String,
    pub(crate) prompt: String,
    pub(crate) options: Vec<String>,
    pub(crate) many: bool,
    pub(crate) other: bool,
    pub(crate) schema: Option<Value>,
    pub(crate) status: String,
    pub(crate) asked_at: f64,
    pub(crate) deadline: Option<f64>,
    pub(crate) answer: Option<Value>,
    pub(crate) answered_by: String,
    pub(crate) answerers: Vec<String>,
    pub(crate) approval: Option<Approval>,
}

/// The rule of a policy that asks.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Approval {
    pub(crate) policy: String,
    pub(crate) rule: String,
    /// Who may answer, in words.
    pub(crate) who: String,
}

/// The most of a question that fits into an error.
const PROMPT_MAX: usize = 200;

/// The code of an answer that does not fit.
const REFUSED: &str = "E3043";
/// The code of an answer to a question that has ended.
const CLOSED: &str = "E3041";

impl Question {
    /// What is asked, with the options by number.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}\n", self.prompt);
        for (number, option) in self.options.iter().enumerate() {
            text += &format!("  {}  {option}\n", number + 1);
        }
        if let Some(schema) = &self.schema {
            text += &format!("  a value that satisfies {schema}\n");
        }
        text
    }

    /// What the answer may be, in a few words.
    pub(crate) fn wanted(&self) -> &'static str {
        match (self.kind.as_str(), self.many, self.other) {
            _ if self.approval.is_some() => "approve, reject, or reject: WHY",
            ("confirm", ..) => "yes or no",
            ("text", ..) => "text",
            ("form", ..) => "JSON",
            (_, true, false) => "numbers or words, with commas between them",
            (_, true, true) => "numbers or words, with commas between them; others are possible",
            (_, false, true) => "number, or another text",
            (_, false, false) => "number or word",
        }
    }

    /// The question in one line, with its choices: `Which?  [a, b or another text]`.
    pub(crate) fn line(&self) -> String {
        let prompt = words::short(&self.prompt, PROMPT_MAX);
        let options = self.options.join(", ");
        let choices = match (self.kind.as_str(), self.options.is_empty()) {
            ("confirm", _) => "yes or no".to_owned(),
            ("form", _) => "JSON".to_owned(),
            (_, true) => return prompt,
            (_, false) if self.other => format!("{options} or another text"),
            (_, false) => options,
        };
        let several = if self.many { "several of " } else { "" };
        format!("{prompt}  [{several}{choices}]")
    }

    /// An answer for a command to try.
    pub(crate) fn example(&self) -> String {
        match (self.kind.as_str(), self.options.first()) {
            ("confirm", _) => "yes".to_owned(),
            ("form", _) => "JSON".to_owned(),
            (_, Some(option)) => words::shell(option),
            (_, None) => "TEXT".to_owned(),
        }
    }

    /// The words of a person, with the options that their numbers stand for.
    pub(crate) fn resolved(&self, words: &str) -> String {
        let option = |word: &str| {
            let named = self.options.iter().any(|option| option == word);
            let number = word.parse::<usize>().ok().filter(|_| !named).and_then(|number| number.checked_sub(1));
            number.and_then(|number| self.options.get(number)).map_or_else(|| word.to_owned(), Clone::clone)
        };
        match (self.options.is_empty(), self.many) {
            (true, _) => words.to_owned(),
            (false, false) => option(words.trim()),
            (false, true) => words.split(',').map(|word| option(word.trim())).collect::<Vec<_>>().join(","),
        }
    }
}

/// One question.
pub(crate) async fn get(client: &Client, id: &str) -> Result<(Question, Value), Failure> {
    let value = client.get(&["api", "questions", id], &[]).await?;
    Ok((answers::read(&value)?, value))
}

/// The open questions of a job and of the jobs below it.
pub(crate) async fn open(client: &Client, job: &str) -> Result<Vec<Question>, Failure> {
    answers::read(&client.get(&["api", "questions"], &[("job", job)]).await?)
}

/// Sends the words of a person as the answer.
pub(crate) async fn answer(client: &Client, question: &Question, words: &str) -> Result<Value, Failure> {
    let body = json!({ "text": question.resolved(words) });
    client.post(&["api", "questions", &question.id, "answer"], &[], &body).await
}

/// Whether a person can be asked.
pub(crate) fn is_attended() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks the person at the terminal until the answer fits. None if somebody else answered first.
pub(crate) async fn put(context: &Context, client: &Client, question: &Question) -> Result<Option<Value>, Failure> {
    context.note(&format!("{} asks: {}", question.job, question.text().trim_end()));
    loop {
        let Some(words) = line(format!("answer ({}): ", question.wanted())).await? else {
            return Err(Failure::usage("there is no terminal to ask at"));
        };
        match answer(client, question, &words).await {
            Ok(value) => return Ok(Some(value)),
            Err(failure) if failure.code.as_deref() == Some(REFUSED) => context.note(&failure.message),
            Err(failure) if failure.code.as_deref() == Some(CLOSED) => {
                context.note(&failure.message);
                return Ok(None);
            }
            Err(failure) => return Err(failure),
        }
    }
}

/// Reads a line on a thread of its own, so that Ctrl-C is handled meanwhile.
async fn line(prompt: String) -> Result<Option<String>, Failure> {
    let (send, read) = oneshot::channel();
    let begun = Env::system().thread("stdin", move || drop(send.send(confirm::answer(&prompt))));
    begun.map_err(|error| Failure::usage(format!("no thread for standard input: {error}")))?;
    read.await.unwrap_or(Ok(None))
}

/// Waits as [`ending::wait`] does, and puts questions of the job to the person at the terminal meanwhile.
pub(crate) async fn wait(
    context: &Context,
    client: &Client,
    id: &str,
    timeout: Option<Duration>,
    tell: Option<&Context>,
) -> Result<Value, Failure> {
    let clock = Env::system().clock;
    let deadline = timeout.map(|timeout| clock.monotonic() + timeout);
    loop {
        let left = deadline.map(|deadline| deadline.saturating_sub(clock.monotonic()));
        let value = ending::wait(client, id, left, tell).await?;
        let job: Job = answers::read(&value)?;
        if !is_attended() {
            return Ok(value);
        }
        // What a policy asks is for somebody else than the one who waits for the job.
        let mut question = None;
        for id in &job.needs_answer {
            let (asked, _) = get(client, id).await?;
            if asked.approval.is_none() {
                question = Some(asked);
                break;
            }
        }
        let Some(question) = question else { return Ok(value) };
        put(context, client, &question).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(many: bool) -> Question {
        let options = ["red", "blue", "3"].map(str::to_owned).to_vec();
        Question { kind: "choose".to_owned(), options, many, ..Question::default() }
    }

    #[test]
    fn numbers_stand_for_options_unless_they_are_options() {
        let check = |many: bool, words: &str, answer: &str| assert_eq!(choice(many).resolved(words), answer, "{words}");
        check(false, " 2 ", "blue");
        check(false, "3", "3");
        check(false, "0", "0");
        check(false, "4", "4");
        check(false, "green, or so", "green, or so");
        check(true, "2, red,9", "blue,red,9");
        assert_eq!(Question::default().resolved(" 1 "), " 1 ");
    }

    #[test]
    fn a_question_shows_its_options() {
        let question = Question { prompt: "Which?".to_owned(), other: true, ..choice(false) };
        assert_eq!(question.text(), "Which?\n  1  red\n  2  blue\n  3  3\n");
        assert_eq!(question.wanted(), "number, or another text");
        assert_eq!(
            (question.line().as_str(), question.example().as_str()),
            ("Which?  [red, blue, 3 or another text]", "red")
        );
        let several = Question { prompt: "Which?".to_owned(), ..choice(true) };
        assert_eq!(several.line(), "Which?  [several of red, blue, 3]");
        let confirm = Question { kind: "confirm".to_owned(), prompt: "Go on?".to_owned(), ..Question::default() };
        assert_eq!((confirm.line().as_str(), confirm.example().as_str()), ("Go on?  [yes or no]", "yes"));
        let text = Question { kind: "text".to_owned(), prompt: "Why?\nSay it.".to_owned(), ..Question::default() };
        assert_eq!((text.line().as_str(), text.example().as_str()), ("Why?…", "TEXT"));
    }
}
