//! Rules for labels of jobs and nodes.

use std::collections::{BTreeMap, BTreeSet};

use atlas_desk::Error;
use atlas_types::{LABEL_BYTES_MAX, LABELS_MAX};

/// Checks the labels of a job.
pub fn check(labels: &BTreeMap<String, String>) -> Result<(), Error> {
    if labels.len() > LABELS_MAX {
        return Err(Error::Malformed(format!("a job has at most {LABELS_MAX} labels")));
    }
    labels.iter().try_for_each(|(key, value)| check_sizes(key, value))
}

/// Checks a change of a node's labels: labels to set, and keys of labels to remove.
///
/// The command line must be able to express each key: `KEY=VALUE` sets a label, `KEY-` removes it.
pub(crate) fn change(
    set: BTreeMap<String, String>,
    remove: BTreeSet<String>,
) -> Result<BTreeMap<String, Option<String>>, Error> {
    if set.is_empty() && remove.is_empty() {
        return Err(Error::Malformed("'set' and 'remove' are both empty".to_owned()));
    }
    if set.len() + remove.len() > LABELS_MAX {
        return Err(Error::Malformed(format!("at most {LABELS_MAX} labels can be changed at once")));
    }
    if let Some(key) = remove.iter().find(|key| set.contains_key(*key)) {
        return Err(Error::Malformed(format!("the label \"{}\" is in both 'set' and 'remove'", short(key))));
    }
    let set = set.into_iter().map(|(key, value)| (key, Some(value)));
    let labels: BTreeMap<_, _> = set.chain(remove.into_iter().map(|key| (key, None))).collect();
    for (key, value) in &labels {
        check_sizes(key, value.as_deref().unwrap_or_default())?;
        if key.contains(|c: char| c == '=' || c.is_whitespace()) || key.ends_with('-') {
            let text = format!("the label key \"{}\" contains \"=\" or a space, or ends with \"-\"", short(key));
            return Err(Error::Malformed(text));
        }
    }
    Ok(labels)
}

fn check_sizes(key: &str, value: &str) -> Result<(), Error> {
    if key.is_empty() || key.len().max(value.len()) > LABEL_BYTES_MAX {
        return Err(Error::Malformed(format!(
            "the label \"{}\" is empty or longer than {LABEL_BYTES_MAX} bytes",
            short(key)
        )));
    }
    // Labels are printed on terminals.
    if key.chars().chain(value.chars()).any(char::is_control) {
        return Err(Error::Malformed(format!(
            "the label \"{}\" contains a control character",
            short(key).escape_debug()
        )));
    }
    Ok(())
}

/// A key shortened for an error message.
fn short(key: &str) -> String {
    key.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn told(set: &[(&str, &str)], remove: &[&str]) -> String {
        let set = set.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        match change(set, remove.iter().map(|&key| key.to_owned()).collect()) {
            Ok(labels) => format!("{} labels", labels.len()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_cannot_be_a_nodes_label_is_refused() {
        let long = "x".repeat(LABEL_BYTES_MAX + 1);
        let many: Vec<String> = (0..LABELS_MAX).map(|n| format!("k{n}")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|key| (key.as_str(), "v")).collect();
        let told = [
            told(&[("zone", "b"), ("disk", "")], &["rack"]),
            told(&many, &[]),
            told(&many, &["rack"]),
            told(&[], &[]),
            told(&[("zone", "b")], &["rack", "zone"]),
            told(&[("", "b")], &[]),
            told(&[("a=b", "c")], &[]),
            told(&[("bad key!", "x")], &[]),
            told(&[], &["zone-"]),
            told(&[("zone", &long)], &[]),
            told(&[], &[&long]),
            told(&[("a", "\u{1b}[2J")], &[]),
            told(&[("a\n", "")], &[]),
        ];
        expect![[r#"
            3 labels
            64 labels
            at most 64 labels can be changed at once
            'set' and 'remove' are both empty
            the label "zone" is in both 'set' and 'remove'
            the label "" is empty or longer than 1024 bytes
            the label key "a=b" contains "=" or a space, or ends with "-"
            the label key "bad key!" contains "=" or a space, or ends with "-"
            the label key "zone-" contains "=" or a space, or ends with "-"
            the label "zone" is empty or longer than 1024 bytes
            the label "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" is empty or longer than 1024 bytes
            the label "a" contains a control character
            the label "a\n" contains a control character"#]].assert_eq(&told.join("\n"));
    }
}
