//! A violation in a document: its location, rule and text, and a suggestion.

/// One violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer of the value; `/` is the document itself.
    pub pointer: String,
    /// The keyword of the rule, as in JSON Schema: `required`, `type`, `oneOf`.
    pub rule: String,
    /// The message, with the same text as in the Python library.
    pub message: String,
    /// The most similar valid name.
    pub suggestion: Option<String>,
}

/// The messages in one line, for jobs and logs.
pub fn joined(violations: &[Violation]) -> String {
    let messages: Vec<&str> = violations.iter().map(|violation| violation.message.as_str()).collect();
    messages.join("; ")
}

/// The locations of the violations with their rules: `/a: type; /b/0: minimum`. None if all violations concern the
/// document itself, because their messages name the member.
pub fn places(violations: &[Violation]) -> Option<String> {
    let inner = violations.iter().filter(|violation| violation.pointer != "/");
    let places: Vec<String> = inner.map(|violation| format!("{}: {}", violation.pointer, violation.rule)).collect();
    (!places.is_empty()).then(|| places.join("; "))
}

/// A pointer for display: the root is `/`.
pub(crate) fn shown(pointer: &str) -> String {
    if pointer.is_empty() { "/".to_owned() } else { pointer.to_owned() }
}

/// A pointer to the member `name` of the value at `pointer`.
pub(crate) fn member(pointer: &str, name: &str) -> String {
    let base = if pointer == "/" { "" } else { pointer };
    format!("{base}/{}", escaped(name))
}

/// A name as a part of a JSON pointer.
pub(crate) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The known name that is most similar to `name`, if the difference is small enough for a typing error, or only one of case or number.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Up to a third of the letters may differ; two swapped neighbours count once.
    let length = name.chars().count();
    let most = (length.max(3) / 3).min(3);
    let stem = singular(name);
    // Each difference makes a name at most one letter longer or shorter. Names can be many, so most are not compared.
    let is_near_in_length = |candidate: &str| candidate.chars().count().abs_diff(length) <= most;
    known
        .into_iter()
        .filter(|&candidate| candidate != name)
        .filter_map(|candidate| match singular(candidate) == stem {
            true => Some((0, candidate)),
            false => is_near_in_length(candidate).then(|| (distance(name, candidate), candidate)),
        })
        .filter(|&(distance, _)| distance <= most)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// A word in small letters, without the ending of its plural: `retries` and `retry` are the same.
fn singular(word: &str) -> String {
    let word = word.to_lowercase();
    match (word.strip_suffix("ies"), word.strip_suffix('s')) {
        (Some(stem), _) => format!("{stem}y"),
        (None, Some(stem)) => stem.to_owned(),
        (None, None) => word,
    }
}

/// The edit distance of two names, with insertions, deletions, replacements and swaps of neighbours. Long names are not
/// compared.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.to_lowercase().chars().take(65).collect();
    let right: Vec<char> = right.to_lowercase().chars().take(65).collect();
    if left.len() > 64 || right.len() > 64 {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (i, &l) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &r) in right.iter().enumerate() {
            let mut least = (above[j] + usize::from(l != r)).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && l == right[j - 1] && left[i - 1] == r {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stand_behind_the_messages() {
        let violation = |pointer: &str, rule: &str, message: &str| Violation {
            pointer: pointer.to_owned(),
            rule: rule.to_owned(),
            message: message.to_owned(),
            suggestion: None,
        };
        let root = violation("/", "required", "'b' is a required property");
        assert_eq!(places(std::slice::from_ref(&root)), None);
        let inner = violation("/a", "type", "5 is not of type 'string'");
        assert_eq!(places(&[inner, root]).as_deref(), Some("/a: type"));
    }

    #[test]
    fn a_slip_is_recognised_and_a_different_word_is_not() {
        let known = ["name", "version", "description", "capabilities", "hardware"];
        for (slip, meant) in [
            ("nme", Some("name")),
            ("verison", Some("version")),
            ("descripton", Some("description")),
            ("capabilites", Some("capabilities")),
            ("Hardware", Some("hardware")),
            ("capability", Some("capabilities")),
            ("names", Some("name")),
            ("name", None),
            ("lifecycle", None),
            ("id", None),
        ] {
            assert_eq!(nearest(slip, known), meant, "{slip}");
        }
    }
}
