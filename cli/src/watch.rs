//! `--watch`: a list, followed by a row for each object that changes.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use atlas_env::Env;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Form, List, ListOptions, Look};

/// Polling interval for objects whose changes are in no event stream.
const EVERY: Duration = Duration::from_secs(1);

/// The `--watch` option.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
#[group(skip)]
pub(crate) struct Watching {
    /// Print a line for each object that changes, until Ctrl-C.
    #[arg(short, long, help_heading = "Lists")]
    pub(crate) watch: bool,
}

/// A watched list.
pub(crate) struct Watch<'a, T> {
    context: &'a Context,
    list: &'a List<'a, T>,
    options: ListOptions,
    /// The widths of the columns so far.
    widths: Vec<usize>,
}

impl<'a, T: DeserializeOwned> Watch<'a, T> {
    /// A watched list without printed rows.
    pub(crate) fn new(context: &'a Context, list: &'a List<'a, T>, options: &ListOptions) -> Result<Self, Failure> {
        if matches!(context.form, Form::Json | Form::Yaml) {
            return Err(Failure::usage("a watched list cannot be a single document").with_next("use: -o jsonl"));
        }
        Ok(Self { context, list, options: options.clone(), widths: Vec::new() })
    }

    /// Prints objects: the first call prints a list with headings, later calls add rows.
    pub(crate) fn print(&mut self, items: Vec<Value>) -> Result<(), Failure> {
        let now = Env::system().clock.wall().0 as f64 / 1e6;
        let (look, form) = (Look { now, ..self.context.look }, &self.context.form);
        let (text, count) =
            self.list.render_under(&mut self.widths, Value::Array(items), &self.options, form, &look)?;
        if count > 0 {
            self.options = self.options.under_a_head();
        }
        self.context.print_form(&text)
    }
}

/// Prints the objects that `fetch` returns, then polls and prints the changed ones, until Ctrl-C. `key` names an
/// object.
pub(crate) async fn poll<T: DeserializeOwned>(
    context: &Context,
    list: &List<'_, T>,
    options: &ListOptions,
    key: impl Fn(&Value) -> String,
    fetch: impl AsyncFn() -> Result<Value, Failure>,
) -> Result<Exit, Failure> {
    let mut watch = Watch::new(context, list, options)?;
    tokio::select! {
        ended = look_again(&mut watch, options, key, fetch) => ended.map(|never| match never {}),
        _ = tokio::signal::ctrl_c() => Ok(Exit::Done),
    }
}

async fn look_again<T: DeserializeOwned>(
    watch: &mut Watch<'_, T>,
    options: &ListOptions,
    key: impl Fn(&Value) -> String,
    fetch: impl AsyncFn() -> Result<Value, Failure>,
) -> Result<Infallible, Failure> {
    let (clock, mut seen) = (Env::system().clock, Seen::default());
    loop {
        let Value::Array(items) = fetch().await? else { return Err(Failure::answer("a list is expected")) };
        let items = items.into_iter().map(|item| (key(&item), item));
        let (changed, gone) = seen.changes(items, |item| options.admits(item))?;
        watch.print(changed)?;
        gone.iter().for_each(|name| watch.context.note(&format!("{name} is gone")));
        clock.sleep(EVERY).await;
    }
}

/// The matching objects of the last poll.
#[derive(Default)]
struct Seen(BTreeMap<String, Value>);

impl Seen {
    /// The objects that have changed since the last poll, and the names of the removed ones. An object that has just
    /// stopped matching is returned one last time.
    fn changes(
        &mut self,
        items: impl Iterator<Item = (String, Value)>,
        admits: impl Fn(&Value) -> Result<bool, Failure>,
    ) -> Result<(Vec<Value>, Vec<String>), Failure> {
        let mut before = std::mem::take(&mut self.0);
        let mut changed = Vec::new();
        for (name, item) in items {
            let (was, admitted) = (before.remove(&name), admits(&item)?);
            if (admitted || was.is_some()) && was.as_ref() != Some(&item) {
                changed.push(item.clone());
            }
            if admitted {
                self.0.insert(name, item);
            }
        }
        Ok((changed, before.into_keys().collect()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_new_or_another_is_told_and_what_is_gone() {
        let mut seen = Seen::default();
        let mut look = |items: &[(&str, u32)]| {
            let items = items.iter().map(|(name, number)| ((*name).to_owned(), json!(number)));
            let (changed, gone) = seen.changes(items, |item| Ok(item.as_u64() < Some(10))).expect("a filter");
            format!("{} {}", json!(changed), gone.join(" "))
        };
        assert_eq!(look(&[("a", 1), ("b", 2), ("c", 30)]), "[1,2] ");
        assert_eq!(look(&[("a", 1), ("b", 3), ("c", 31)]), "[3] ");
        assert_eq!(look(&[("a", 10), ("c", 9)]), "[10,9] b");
        assert_eq!(look(&[("a", 11), ("c", 9)]), "[] ");
    }
}
