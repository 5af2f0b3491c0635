//! The context of every command: the cluster, the output options, stdout and stderr.

mod bridge;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use atlas_env::Env;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::{Client, Talk, Trust};
use crate::config::Config;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::{Globals, SERVER_DEFAULT};
use crate::output::screen::{self, ColourWhen, Screen};
use crate::output::{Form, List, ListOptions, Look, Shown, visible};
use crate::sign_in::Renewal;
use crate::words;

pub(crate) use bridge::Bridge;

/// Most results that become one document, which is in memory until the last one.
const GATHERED_MAX: usize = 100_000;

/// That what is read may be old is said once.
static STALE: std::sync::Once = std::sync::Once::new();

/// The context of one command.
pub(crate) struct Context {
    /// How results are printed.
    pub(crate) form: Form,
    /// Time format.
    pub(crate) look: Look,
    server: Option<String>,
    context: Option<String>,
    ca_file: Option<PathBuf>,
    namespace: Option<String>,
    config: Result<Config, Failure>,
    talk: Talk,
    stale: bool,
    quiet: bool,
    colour: bool,
    gathered: Mutex<Vec<Gathered>>,
}

/// Results that become one document.
#[derive(Debug, Default)]
struct Gathered {
    /// Whether the items of a result that is an array count one by one.
    flat: bool,
    values: Vec<Value>,
}

impl Context {
    pub(crate) fn new(globals: &Globals) -> Self {
        let colour = if globals.no_color { ColourWhen::Never } else { globals.color };
        Screen::look(colour);
        let now = Env::system().clock.wall().0 as f64 / 1e6;
        Self {
            form: globals.output.clone(),
            look: Look { time: globals.time, now },
            server: given(&globals.server, "ATLAS_SERVER"),
            context: given(&globals.context, "ATLAS_CONTEXT"),
            ca_file: given(&globals.ca_file, "ATLAS_CA_FILE").filter(|path| !path.is_empty()).map(PathBuf::from),
            namespace: given(&globals.namespace, "ATLAS_NAMESPACE"),
            config: Config::read(),
            talk: Talk { trace: globals.trace, verbose: globals.verbose },
            stale: globals.stale,
            quiet: globals.quiet,
            colour: colour.applies(std::io::stderr().is_terminal()),
            gathered: Mutex::default(),
        }
    }

    /// The configuration file.
    pub(crate) fn config(&self) -> Result<&Config, Failure> {
        self.config.as_ref().map_err(Clone::clone)
    }

    /// The addresses from the command line or the environment.
    pub(crate) fn named_server(&self) -> Option<String> {
        self.server.clone()
    }

    /// The addresses of the cluster: from `--server`, otherwise from the named context, otherwise from the current
    /// context. The second text says where they come from.
    pub(crate) fn server(&self) -> Result<(String, String), Failure> {
        // An argument takes precedence over the environment, and an address over the name of a context.
        let by_name = typed(&self.context, "ATLAS_CONTEXT") && !typed(&self.server, "ATLAS_SERVER");
        if let (Some(server), false) = (&self.server, by_name) {
            let origin = if typed(&self.server, "ATLAS_SERVER") { "--server" } else { "ATLAS_SERVER" };
            return Ok((server.clone(), origin.to_owned()));
        }
        let config = self.config()?;
        match self.context.as_ref().or(config.current.as_ref()) {
            Some(name) => Ok((config.context(name)?.server.clone(), format!("context {name}"))),
            None => Ok((SERVER_DEFAULT.to_owned(), "the default".to_owned())),
        }
    }

    /// The token for the cluster: `ATLAS_TOKEN`, otherwise that of the context whose addresses are used.
    fn token(&self) -> Result<Option<String>, Failure> {
        if let Some(token) = std::env::var("ATLAS_TOKEN").ok().filter(|token| !token.is_empty()) {
            return Ok(Some(token));
        }
        let (_, origin) = self.server()?;
        let Some(name) = origin.strip_prefix("context ") else { return Ok(None) };
        Ok(self.config()?.context(name)?.token.clone())
    }

    /// The file with trusted certificates from the command line or the environment.
    pub(crate) fn named_ca_file(&self) -> Option<&Path> {
        self.ca_file.as_deref()
    }

    /// The certificates that are trusted: `--ca-file`, otherwise those of the context whose addresses are used.
    fn trust(&self) -> Result<Trust, Failure> {
        if let Some(path) = &self.ca_file {
            return Ok(Trust::File(path.clone()));
        }
        let (_, origin) = self.server()?;
        let Some(name) = origin.strip_prefix("context ") else { return Ok(Trust::Machine) };
        let entry = self.config()?.context(name)?;
        Ok(match (&entry.ca_file, &entry.ca) {
            (Some(path), _) => Trust::File(path.clone()),
            (None, Some(text)) => Trust::Text(text.clone()),
            (None, None) => Trust::Machine,
        })
    }

    /// The namespace of the command.
    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }

    /// The namespace that the user gave.
    pub(crate) fn named_namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The HTTP client of the cluster.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        if self.stale {
            STALE.call_once(|| self.note("stale: what one controller knows; later changes may be missing"));
        }
        Ok(self.any_client()?.reading_stale(self.stale))
    }

    /// A client whose reads need what the API says, also with `--stale`.
    pub(crate) fn any_client(&self) -> Result<Client, Failure> {
        Ok(self.anonymous()?.with_token(self.token()?.as_deref())?.renewing(self.renewal()?))
    }

    /// The renewal of the context's token, if it is used and has ended.
    fn renewal(&self) -> Result<Option<Renewal>, Failure> {
        if std::env::var_os("ATLAS_TOKEN").is_some_and(|token| !token.is_empty()) {
            return Ok(None);
        }
        let (_, origin) = self.server()?;
        let Some(name) = origin.strip_prefix("context ") else { return Ok(None) };
        Ok(Renewal::of(self.config()?, name))
    }

    /// The same client without a token.
    pub(crate) fn anonymous(&self) -> Result<Client, Failure> {
        let (server, origin) = self.server()?;
        let client = Client::trusting(&server, &self.trust()?).map_err(|failure| {
            let message = format!("{} (from {origin})", failure.message);
            Failure { message, ..failure }
        })?;
        Ok(client.talking(self.talk).in_namespace(self.namespace.clone()))
    }

    /// Prints a result to stdout in the requested format.
    pub(crate) fn show(&self, shown: &Shown) -> Result<(), Failure> {
        if let Some(Gathered { flat, values }) = self.gathered().last_mut() {
            match &shown.value {
                Value::Array(items) if *flat => values.extend(items.iter().cloned()),
                value => values.push(value.clone()),
            }
            if values.len() > GATHERED_MAX {
                let failure =
                    Failure::usage(format!("there are more than {GATHERED_MAX} results, too many for one document"));
                return Err(failure.with_next("print each as it comes: -o jsonl"));
            }
            return Ok(());
        }
        self.print_form(&self.form.render(shown)?)
    }

    /// Runs a command that shows several results. json and yaml are one document, so there they become one array; with `flat` it has the
    /// items of results that are arrays themselves.
    pub(crate) async fn as_one<T>(
        &self,
        flat: bool,
        all: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        if !matches!(self.form, Form::Json | Form::Yaml) {
            return all.await;
        }
        self.gathered().push(Gathered { flat, values: Vec::new() });
        let ended = all.await;
        let values = self.gathered().pop().unwrap_or_default().values;
        // What was shown before a failure is shown then as well.
        if ended.is_ok() || !values.is_empty() {
            self.show(&Shown { value: Value::Array(values), ..Shown::default() })?;
        }
        ended
    }

    fn gathered(&self) -> MutexGuard<'_, Vec<Gathered>> {
        // Every change is complete while the lock is held.
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints a result; text for people has its colours.
    pub(crate) fn print_form(&self, text: &str) -> Result<(), Failure> {
        self.write(text, self.form.is_text() && Screen::get().colour)
    }

    /// Prints a list in the requested format; returns the number of objects.
    pub(crate) fn list<T: DeserializeOwned>(
        &self,
        value: Value,
        options: &ListOptions,
        list: &List<'_, T>,
    ) -> Result<usize, Failure> {
        let (text, count) = list.render(value, options, &self.form, &self.look)?;
        self.print_form(&text)?;
        Ok(count)
    }

    /// Prints text to stdout; if the reader has closed the pipe (`| head`), the program ends without an error.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        self.write(text, false)
    }

    fn write(&self, text: &str, has_colours: bool) -> Result<(), Failure> {
        let mut stdout = std::io::stdout().lock();
        let text = if stdout.is_terminal() { visible(text) } else { text.into() };
        let text = if has_colours { screen::painted(&text).into() } else { text };
        let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        match written {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
            Err(error) => Err(Failure::new("E0103", Exit::Short, format!("the result could not be written: {error}"))),
        }
    }

    /// Prints a note for the user to stderr.
    pub(crate) fn note(&self, line: &str) {
        if self.quiet {
            return;
        }
        match line.strip_prefix(words::WARNING) {
            Some(rest) => self.tell("\u{1b}[33m", words::WARNING, rest),
            None => self.tell("", line, ""),
        }
    }

    /// Prints to stderr what a person must know to go on, also with `--quiet`.
    pub(crate) fn must_know(&self, line: &str) {
        self.tell("", line, "");
    }

    /// Prints text to stderr as it is, without a line end; for text that forms piece by piece.
    pub(crate) fn passing(&self, text: &str) {
        if !self.quiet && !text.is_empty() {
            let mut stderr = std::io::stderr().lock();
            // Nobody can be told if stderr is closed.
            let _ = stderr.write_all(visible(text).as_bytes()).and_then(|()| stderr.flush());
        }
    }

    /// Prints a command to try next, dimmed on a terminal; prints nothing if hints are off.
    pub(crate) fn next(&self, line: &str) {
        let hints = self.config.as_ref().ok().and_then(|config| config.hints).unwrap_or(true);
        if hints && !self.quiet {
            self.tell("\u{1b}[2m", line, "");
        }
    }

    /// Prints an error, with its first part in colour; if the output format is data, the error is printed as data too.
    pub(crate) fn report(&self, failure: &Failure) {
        if self.form.is_data() {
            self.tell("", &failure.value().to_string(), "");
            return;
        }
        let text = failure.to_string();
        let (head, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
        // The hint, which is the last line.
        let next = failure.next.as_ref().and_then(|next| rest.strip_suffix(next.as_str()).map(|rest| (rest, next)));
        let Some((rest, next)) = next.filter(|_| self.colour) else { return self.tell("\u{1b}[1;31m", head, rest) };
        self.tell("\u{1b}[1;31m", head, rest.trim_end_matches('\n'));
        self.tell("\u{1b}[2m", next, "");
    }

    /// Whether stderr is a terminal on which a status line can be updated.
    pub(crate) fn has_status_line(&self) -> bool {
        !self.quiet && std::io::stderr().is_terminal()
    }

    /// Replaces the status line on the terminal; empty text removes it.
    pub(crate) fn status_line(&self, text: &str) {
        let mut stderr = std::io::stderr().lock();
        // The status line must not wrap, because a wrapped line cannot be overwritten.
        let text: String = visible(text).chars().take(79).collect();
        let _ = write!(stderr, "\r\u{1b}[K{text}").and_then(|()| stderr.flush());
    }

    /// Prints lines to stderr: `head` in colour if colours are on, `rest` without colour.
    fn tell(&self, colour: &str, head: &str, rest: &str) {
        let mut stderr = std::io::stderr().lock();
        let terminal = stderr.is_terminal();
        let shown = |text| if terminal { visible(text) } else { std::borrow::Cow::Borrowed(text) };
        let (on, off) = if self.colour && !colour.is_empty() { (colour, "\u{1b}[0m") } else { ("", "") };
        // The command must succeed even if the terminal was closed.
        let _ = writeln!(stderr, "{on}{}{off}{}", shown(head), shown(rest));
    }
}

/// The value of an option that a variable can set; an empty variable counts as unset.
fn given(option: &Option<String>, variable: &str) -> Option<String> {
    option.clone().filter(|value| !value.is_empty() || typed(option, variable))
}

/// Whether the value was typed, and does not come from the variable.
fn typed(option: &Option<String>, variable: &str) -> bool {
    option.is_some() && *option != std::env::var(variable).ok()
}
