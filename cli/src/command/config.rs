//! `atlasctl config`: habits.

use serde_json::json;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;

/// What to do with the configuration.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Prints all values, and where they stand.
    Get,
    /// Sets a value: hints on or off decides whether outputs end with the next command.
    Set(SetOptions),
}

/// What to set.
#[derive(Debug, clap::Args)]
pub(crate) struct SetOptions {
    /// Which value.
    #[arg(value_parser = ["hints"])]
    key: String,
    /// What it shall be.
    #[arg(value_parser = ["on", "off"])]
    value: String,
}

pub(crate) fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    let mut config = context.config()?.clone();
    if let Verb::Set(options) = verb {
        config.hints = Some(options.value == "on");
        config.write()?;
        context.note(&format!("{} {}", options.key, options.value));
    }
    let hints = if config.hints.unwrap_or(true) { "on" } else { "off" };
    let file = crate::config::Config::path().map(|path| path.display().to_string()).unwrap_or_default();
    let value = json!({"hints": config.hints.unwrap_or(true), "current": config.current, "file": file});
    let text = match verb {
        Verb::Get => {
            format!("hints    {hints}\ncontext  {}\nfile     {file}\n", config.current.as_deref().unwrap_or("-"))
        }
        Verb::Set(_) => String::new(),
    };
    context.show(&Shown { value, text, names: vec!["config/hints".to_owned()] })?;
    Ok(Exit::Done)
}
