//! `atlasctl config`: settings.

use serde_json::json;

use crate::config::Config;
use crate::context::Context;
use crate::editor::Draft;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;

/// Verbs of `atlasctl config`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Prints all settings and the path of the file.
    Get,
    /// Changes a setting; hints on or off controls whether output ends with a suggested next command.
    Set(SetOptions),
    /// Opens the configuration file in your editor; invalid contents are not saved.
    Edit,
}

/// Options of `atlasctl config set`.
#[derive(Debug, clap::Args)]
pub(crate) struct SetOptions {
    /// Setting.
    #[arg(value_parser = ["hints"])]
    key: String,
    /// New value.
    #[arg(value_parser = ["on", "off"])]
    value: String,
}

pub(crate) fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    let wanted = match verb {
        Verb::Get => None,
        Verb::Set(options) => Some(options),
        Verb::Edit => return edit(context),
    };
    let mut config = context.config()?.clone();
    if let Some(options) = wanted {
        config.hints = Some(options.value == "on");
        config.write()?;
        context.note(&format!("{} {}", options.key, options.value));
    }
    let hints = if config.hints.unwrap_or(true) { "on" } else { "off" };
    let file = Config::path().map(|path| path.display().to_string()).unwrap_or_default();
    let value = json!({"hints": config.hints.unwrap_or(true), "current": config.current, "file": file});
    let text = match wanted {
        None => format!("hints    {hints}\ncontext  {}\nfile     {file}\n", config.current.as_deref().unwrap_or("-")),
        Some(_) => String::new(),
    };
    context.show(&Shown { value, text, names: vec!["config/hints".to_owned()] })?;
    Ok(Exit::Done)
}

/// Opens the file even if its contents are invalid, so that the user can fix it.
fn edit(context: &Context) -> Result<Exit, Failure> {
    let file = Config::file()?;
    let old = Config::text_of(&file)?;
    let draft = Draft::new("toml", &old)?;
    let text = draft.edit()?;
    if let Err(failure) = Config::parse(&text, draft.path()) {
        return Err(failure.with_next(format!("your edit is kept there; the file is unchanged: {}", file.display())));
    }
    draft.remove();
    let result = if text == old { "unchanged" } else { "changed" };
    if text != old {
        Config::write_text(&text, &file)?;
    }
    let told = format!("{}  {result}\n", file.display());
    let value = json!({"file": file.display().to_string(), "result": result});
    context.show(&Shown { value, text: told, names: vec!["config/file".to_owned()] })?;
    Ok(Exit::Done)
}
