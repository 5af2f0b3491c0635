//! Atlas's own words about a value that is none of the possible ones.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

use super::Context;
use crate::violation::{Violation, nearest};

/// The most possible values that a message lists.
const LISTED_MAX: usize = 16;

impl Context<'_> {
    /// The violation of a list of possible values: the value that was probably meant, or the possible ones. None for other rules.
    pub(super) fn impossible(&self) -> Option<Violation> {
        let violation = self.violation();
        let choices: Vec<&Value> = match violation.rule.as_str() {
            "enum" => self.stated().as_array().into_iter().flatten().collect(),
            "const" => vec![self.stated()],
            // Of several forms, those that are a list of words.
            "oneOf" | "anyOf" if self.instance.is_string() => self.branches().flat_map(words_of).collect(),
            _ => return None,
        };
        if choices.is_empty() {
            return None;
        }
        let words = choices.iter().filter_map(|choice| choice.as_str());
        let meant = self.instance.as_str().and_then(|given| nearest(given, words));
        let title = self.holder.and_then(|holder| holder.get("title")).and_then(Value::as_str);
        let what = title.map_or_else(|| "not possible here".to_owned(), |title| format!("no {title}"));
        let rest = meant.map_or_else(|| listed(&choices), |meant| format!("; did you mean \"{meant}\"?"));
        let message = format!("{} is {what}{rest}", self.instance);
        Some(Violation { message, suggestion: meant.map(str::to_owned), ..violation })
    }

    fn branches(&self) -> impl Iterator<Item = &Value> {
        self.stated().as_array().into_iter().flatten()
    }
}

/// The errors of the only form that the value can have by its type; none if there are several such forms, or none.
pub(super) fn of_the_only_form<'a>(error: &'a ValidationError<'_>) -> Option<&'a [ValidationError<'static>]> {
    let (Kind::OneOfNotValid { context } | Kind::AnyOf { context }) = error.kind() else { return None };
    let at = error.instance_path().as_str();
    let is_of_type = |errors: &&Vec<ValidationError<'static>>| {
        let whole = |inner: &ValidationError<'_>| inner.instance_path().as_str() == at;
        let is_of = |inner: &ValidationError<'_>, keyword: &str| inner.evaluation_path().as_str().ends_with(keyword);
        !errors.iter().any(|inner| whole(inner) && (is_of(inner, "/type") || is_of(inner, "/enum")))
    };
    let mut forms = context.iter().filter(is_of_type);
    match (forms.next(), forms.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// The words that a form allows.
fn words_of(form: &Value) -> Vec<&Value> {
    let listed = form.get("enum").and_then(Value::as_array).into_iter().flatten();
    listed.chain(form.get("const")).collect()
}

/// `, only "a", "b" and 3 more`
fn listed(choices: &[&Value]) -> String {
    let shown: Vec<String> = choices.iter().take(LISTED_MAX).map(ToString::to_string).collect();
    let more = choices.len().saturating_sub(LISTED_MAX);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!(", only {}{more}", shown.join(", "))
}
