//! `atlasctl question`: what jobs ask people. And `atlasctl job answer`.

use serde_json::Value;

use crate::answers;
use crate::client::Client;
use crate::command::chain_run;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Column, List, ListOptions, Shown, column, members, wide};
use crate::questions::{self, Question};
use crate::words;

/// Most questions that a list fetches.
const LISTED: &str = "1000";

/// Verbs of `atlasctl question`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Lists open questions, the oldest first.
    List(Options),
    /// Shows questions with their options and answers.
    Show(Names),
    /// Answers a question. The first answer stands.
    Answer(Answer),
}

/// Options of `atlasctl question list`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only those of this job, or of this run of a chain, and of the jobs below it.
    #[arg(long, value_name = "ID", value_parser = names::ran)]
    job: Option<String>,
    /// Also questions that have ended, of jobs that the cluster still has.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    list: ListOptions,
}

/// Ids of questions.
#[derive(Debug, clap::Args)]
pub(crate) struct Names {
    /// The question's id.
    #[arg(value_name = "ID", required = true, value_parser = names::question)]
    ids: Vec<String>,
}

/// Options of `atlasctl question answer`.
#[derive(Debug, clap::Args)]
pub(crate) struct Answer {
    /// The question's id.
    #[arg(value_name = "ID", value_parser = names::question)]
    id: String,
    /// The answer: an option or its number, several with commas between them, yes or no, a text, or JSON for a form. To what a policy
    /// asks: approve, reject, or "reject: WHY".
    /// Asks for it on a terminal if it is left out.
    #[arg(value_name = "ANSWER", allow_hyphen_values = true)]
    answer: Option<String>,
}

/// Options of `atlasctl job answer`.
#[derive(Debug, clap::Args)]
pub(crate) struct JobAnswer {
    /// Id of a job or of a run of a chain, or a unique prefix of it.
    #[arg(value_name = "ID", value_parser = names::ran)]
    id: String,
    /// The answer, as in atlasctl question answer. Left out on a terminal, all open questions are asked.
    #[arg(value_name = "ANSWER", allow_hyphen_values = true)]
    answer: Option<String>,
}

const COLUMNS: [Column<Question>; 7] = [
    column("ID", "id", |question, _| question.id.clone()),
    column("JOB", "job", |question, _| question.job.clone()),
    column("KIND", "kind", |question, _| question.kind.clone()),
    column("STATUS", "status", |question, _| question.status.clone()),
    column("AGE", "asked_at", |question, look| words::age(look.now - question.asked_at)),
    column("PROMPT", "prompt", |question, _| question.prompt.lines().next().unwrap_or_default().to_owned()),
    wide("ANSWER", "answer", |question, _| question.answer.as_ref().map(Value::to_string).unwrap_or_default()),
];

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::List(options) => list(context, options).await,
        Verb::Show(options) => names::each(context, &options.ids, async |id| show(context, id).await).await,
        Verb::Answer(options) => {
            let client = context.client()?;
            let (question, _) = questions::get(&client, &options.id).await?;
            answer(context, &client, &question, options.answer.as_deref()).await
        }
    }
}

async fn list(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    let mut query = vec![("limit", LISTED)];
    query.extend(options.all.then_some(("status", "all")));
    let jobs = match options.job.as_deref() {
        None => Vec::new(),
        Some(id) if chain_run::is_one(id) => chain_run::jobs(&client, id).await?,
        Some(id) => vec![id.to_owned()],
    };
    let mut found = Vec::new();
    for job in &jobs {
        let of_job = [&query[..], &[("job", job)]].concat();
        found.extend(answers::read::<Vec<Value>>(&client.get(&["api", "questions"], &of_job).await?)?);
    }
    let found = match options.job {
        None => client.get(&["api", "questions"], &query).await?,
        Some(_) => Value::Array(found),
    };
    let name = |question: &Question| format!("question/{}", question.id);
    let list = List { columns: &COLUMNS, members: members::QUESTION, name };
    if context.list(found, &options.list, &list)? == 0 {
        context.note("no questions");
    }
    Ok(Exit::Done)
}

async fn show(context: &Context, id: &str) -> Result<Exit, Failure> {
    let (question, value) = questions::get(&context.client()?, id).await?;
    let text = text(&question);
    context.show(&Shown { value, text, names: vec![format!("question/{id}")] })?;
    if question.status == "open" {
        context.next(&format!("next: atlasctl question answer {id} ANSWER"));
    }
    Ok(Exit::Done)
}

fn text(question: &Question) -> String {
    let mut text = format!("{}   {}   {}   {}\n", question.id, question.kind, question.status, question.job);
    text.extend(question.text().lines().map(|line| format!("  {line}\n")));
    if let Some(approval) = &question.approval {
        text += &format!("  asked by   the rule \"{}\" of the policy \"{}\"\n", approval.rule, approval.policy);
        text += &format!("  for        {}\n", approval.who);
    } else if !question.answerers.is_empty() {
        text += &format!("  for        {}\n", question.answerers.join(", "));
    }
    if let Some(answer) = &question.answer {
        let by = if question.answered_by.is_empty() { "by default" } else { question.answered_by.as_str() };
        text += &format!("  answer     {answer}   {by}\n");
    }
    text
}

/// Answers the open question of a job, or on a terminal all of them.
pub(crate) async fn of_job(context: &Context, options: &JobAnswer) -> Result<Exit, Failure> {
    let client = context.client()?;
    let open = if chain_run::is_one(&options.id) {
        let mut open = Vec::new();
        for job in chain_run::jobs(&client, &options.id).await? {
            open.extend(questions::open(&client, &job).await?);
        }
        open
    } else {
        questions::open(&client, &options.id).await?
    };
    let next = format!("what it does: atlasctl job show {}", options.id);
    match (open.as_slice(), &options.answer) {
        ([], _) => {
            Err(Failure::new("E3040", Exit::NotFound, format!("{} has no open question", options.id)).with_next(next))
        }
        ([question], words) => answer(context, &client, question, words.as_deref()).await,
        (several, Some(_)) => {
            let next = format!("choose one: atlasctl question answer {} ANSWER", several[0].id);
            Err(Failure::usage(format!("{} has {} open questions", options.id, several.len())).with_next(next))
        }
        (several, None) => {
            for question in several {
                answer(context, &client, question, None).await?;
            }
            Ok(Exit::Done)
        }
    }
}

async fn answer(context: &Context, client: &Client, question: &Question, words: Option<&str>) -> Result<Exit, Failure> {
    let answered = match words {
        Some(words) => Some(questions::answer(client, question, words).await?),
        None if questions::is_attended() => questions::put(context, client, question).await?,
        None => return Err(Failure::usage("there is no terminal to ask at: give the ANSWER")),
    };
    let Some(value) = answered else { return Ok(Exit::Conflict) };
    let read: Question = answers::read(&value)?;
    let text = format!("answered {}: {}\n", read.id, read.answer.unwrap_or_default());
    context.show(&Shown { value, text, names: vec![format!("question/{}", read.id)] })?;
    context.next(&format!("next: atlasctl job wait {}", read.job));
    Ok(Exit::Done)
}
