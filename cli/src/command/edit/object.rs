//! Editing an object: a refused document comes back with the reason on top, and after a conflict with what others changed.

use atlas_contract::yaml as reader;
use serde_json::{Value, json};

use crate::client::Client;
use crate::command::object::{self, Wanted};
use crate::context::Context;
use crate::difference::{self, Change};
use crate::editor::Draft;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Shown, yaml};
use crate::words;

const HEAD: &str = "# Labels and spec can be changed. Lines at the top that begin with # are ignored.\n";

pub(super) async fn run(context: &Context, kind: &str, name: &str, dry_run: bool) -> Result<Exit, Failure> {
    let client = context.client()?;
    let path = ["api", "objects", kind, name];
    let mut base = client.get(&path, &[]).await?;
    let mut offered = HEAD.to_owned() + &yaml(&editable(&base));
    let draft = Draft::new("yaml", &offered)?;
    loop {
        let text = draft.edit()?;
        let failure = match attempt(&client, &base, &text, dry_run).await {
            Ok(changes) => {
                draft.remove();
                return show(context, &format!("{kind}/{name}"), &changes, dry_run);
            }
            Err(failure) => failure,
        };
        // Whoever leaves the editor without a change gives up, and no edit helps if no controller answers.
        if text == offered || failure.exit == Exit::Unreachable {
            return Err(kept(context, &draft, failure));
        }
        let mut head = reasons(&failure);
        if object::is_conflict(&failure) {
            let theirs = client.get(&path, &[]).await?;
            head += &comment(&conflict(&base, &theirs));
            base = theirs;
        }
        offered = head + &comment("To give up, leave this file as it is.") + &without_comments(&text);
        draft.write(&offered)?;
    }
}

/// The part of an object that a person writes.
fn editable(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({
        "kind": object["kind"],
        "metadata": { "name": metadata["name"], "namespace": metadata["namespace"], "labels": metadata["labels"] },
        "spec": object["spec"],
    })
}

/// Applies an edited document to the version that the user saw; returns the changes.
async fn attempt(client: &Client, base: &Value, text: &str, dry_run: bool) -> Result<Vec<Change>, Failure> {
    let wanted = read(base, text).map_err(|why| Failure::new("E0125", Exit::Invalid, why))?;
    let document = |labels: &Value, spec: &Value| json!({ "labels": labels, "spec": spec });
    let before = document(&base["metadata"]["labels"], &base["spec"]);
    let changes = difference::between(&before, &document(&wanted.labels, &wanted.spec));
    if changes.is_empty() {
        return Ok(changes);
    }
    let mut query = wanted.query();
    if dry_run {
        query.push(("dry_run", "true"));
    }
    client.put_revision(&wanted.path(), &query, &wanted.body(), object::revision(base)).await?;
    Ok(changes)
}

fn read(base: &Value, text: &str) -> Result<Wanted, String> {
    let edited = reader::load(text.as_bytes(), reader::Budget::default());
    let edited = edited.map_err(|error| atlas_env::chain(&error))?;
    let wanted = Wanted::read(&edited)?;
    let before = editable(base);
    for place in ["/kind", "/metadata/name", "/metadata/namespace"] {
        if before.pointer(place) != edited.pointer(place) {
            return Err(format!("{place} was changed; only labels and spec can be changed"));
        }
    }
    Ok(wanted)
}

/// Why a document was refused, as comments.
fn reasons(failure: &Failure) -> String {
    let places = failure.places.iter().map(|(place, what)| comment(&format!("  {place} {what}")));
    comment(&format!("error: {}", failure.message)) + &places.collect::<String>()
}

/// What others changed since the user began.
fn conflict(before: &Value, after: &Value) -> String {
    let by = after["metadata"]["updated_by"].as_str().unwrap_or_default();
    let changes = difference::text(&difference::between(&editable(before), &editable(after)));
    format!("Since you began, {by} has changed:\n{changes}Remove these lines to replace that version with yours.")
}

fn show(context: &Context, name: &str, changes: &[Change], dry_run: bool) -> Result<Exit, Failure> {
    let word = if changes.is_empty() { "unchanged" } else { "changed" };
    let dry = if dry_run && !changes.is_empty() { " (dry run)" } else { "" };
    let text = format!("{name}  {word}{dry}\n{}", difference::text(changes));
    let value = json!([{"name": name, "result": word}]);
    context.show(&Shown { value, text, names: vec![name.to_owned()] })?;
    Ok(Exit::Done)
}

fn kept(context: &Context, draft: &Draft, failure: Failure) -> Failure {
    context.note(&format!("your edit is kept in {}", draft.path().display()));
    let path = words::shell(&draft.path().display().to_string());
    failure.with_next(format!("correct it, then: atlasctl apply -f {path}"))
}

/// A text as comments, one per line.
fn comment(text: &str) -> String {
    text.lines().map(|line| format!("# {line}\n")).collect()
}

/// The text without its first comments, which are from this program.
fn without_comments(text: &str) -> String {
    text.split_inclusive('\n').skip_while(|line| line.starts_with('#')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Value {
        json!({
            "kind": "webhook", "spec": { "url": "http://a" }, "status": { "state": "ready" },
            "metadata": { "name": "ci", "namespace": "default", "labels": {}, "uid": 3, "revision": 7 },
        })
    }

    #[test]
    fn names_cannot_be_edited() {
        let told = |from: &str, to: &str| match read(&base(), &yaml(&editable(&base())).replace(from, to)) {
            Ok(wanted) => wanted.spec.to_string(),
            Err(why) => why,
        };
        assert_eq!(told("http://a", "http://b"), r#"{"url":"http://b"}"#);
        assert_eq!(told("name: ci", "name: cd"), "/metadata/name was changed; only labels and spec can be changed");
        assert_eq!(told("kind: webhook", "kind: x"), "/kind was changed; only labels and spec can be changed");
        assert!(told("spec:", "spec: [").contains("line"));
    }

    #[test]
    fn the_reason_is_a_comment_above_the_text() {
        let text = format!("{}{HEAD}kind: a\n# mine\n", comment("error: x\n\ny"));
        assert_eq!(without_comments(&text), "kind: a\n# mine\n");
        let mut theirs = base();
        (theirs["spec"]["url"], theirs["metadata"]["updated_by"]) = (json!("http://b"), json!("bob"));
        assert_eq!(
            conflict(&base(), &theirs),
            "Since you began, bob has changed:\n~ /spec/url  \"http://a\" → \"http://b\"\nRemove these lines to replace that version with yours."
        );
    }
}
