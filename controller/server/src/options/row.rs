//! One row of the table of options.

use super::value::Form;

/// One option.
#[derive(Debug, Clone, Copy)]
pub struct OptionRow {
    /// The dotted key as in the file: `http.listen`.
    pub key: &'static str,
    /// Its flag without the leading dashes.
    pub flag: &'static str,
    /// Its environment variable.
    pub variable: &'static str,
    /// The form of its value.
    pub form: Form,
    /// The default as text; empty for none.
    pub default: &'static str,
    /// The version that introduced it.
    pub since: &'static str,
    /// The description for the documentation.
    pub doc: &'static str,
}

/// An option with a default, or with an empty one for none.
pub(super) const fn row(
    key: &'static str,
    flag: &'static str,
    variable: &'static str,
    form: Form,
    default: &'static str,
    doc: &'static str,
) -> OptionRow {
    OptionRow { key, flag, variable, form, default, since: "0.1.0", doc }
}

/// An option without a default.
pub(super) const fn unset(
    key: &'static str,
    flag: &'static str,
    variable: &'static str,
    form: Form,
    doc: &'static str,
) -> OptionRow {
    row(key, flag, variable, form, "", doc)
}
