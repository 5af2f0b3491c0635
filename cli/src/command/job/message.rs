//! `atlasctl job message`.

use serde_json::{Value, json};

use crate::command::chain_run;
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;
use crate::names;
use crate::output::Shown;

/// Options of `atlasctl job message`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Id of a job, or of a run of a chain of which one job runs, or a unique prefix of it.
    #[arg(value_name = "ID", value_parser = names::ran)]
    id: String,
    /// The message: JSON, @FILE, or - for stdin.
    #[arg(required_unless_present = "text", value_name = "JSON|@FILE|-")]
    message: Option<String>,
    /// The message as text, which needs no quotation marks of JSON.
    #[arg(long, value_name = "TEXT", conflicts_with = "message")]
    text: Option<String>,
    /// What the message is about: a durable program can wait for the next message of a channel.
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<String>,
    /// Name of the message: the same name again delivers nothing.
    #[arg(long = "id", value_name = "NAME")]
    name: Option<String>,
}

impl Options {
    fn message(&self) -> Result<Value, Failure> {
        match (&self.message, &self.text) {
            (Some(message), _) => input::whole(message, "the message").map_err(|failure| match failure.next {
                None => failure.with_next(format!("send it as text: atlasctl job message {} --text TEXT", self.id)),
                Some(_) => failure,
            }),
            (None, text) => Ok(Value::from(text.as_deref().unwrap_or_default())),
        }
    }
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let mut body = json!({ "message": options.message()? });
    if let Some(name) = &options.name {
        body["id"] = json!(name);
    }
    if let Some(channel) = &options.channel {
        body["channel"] = json!(channel);
    }
    let client = context.client()?;
    let mut job = options.id.clone();
    if chain_run::is_one(&job) {
        let again = |job: &str| format!("atlasctl job message {job} …");
        job = chain_run::only_job(&client, &job, "runs", |job| !job.is_terminal(), again).await?;
    }
    let value = client.post(&["api", "jobs", &job, "messages"], &[], &body).await?;
    let id = value["id"].as_str().ok_or_else(|| Failure::answer("a message is answered with an id"))?.to_owned();
    let repeated = value["repeated"] == true;
    let text = if repeated { format!("{id} was delivered before\n") } else { format!("delivered {id}\n") };
    context.show(&Shown { value, text, names: vec![id] })?;
    Ok(Exit::Done)
}
