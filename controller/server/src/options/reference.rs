//! The reference page of the options.

use std::fmt::Write as _;

use super::table::OPTIONS;

/// The reference page in Markdown.
pub fn reference() -> String {
    let mut page = String::from(
        "# Options of the controller\n\n\
         Flags take precedence over the environment, the environment over the file (`--config FILE` or\n\
         `ATLAS_CONTROLLER_CONFIG`, TOML), the file over the default. Durations are written `30s`, sizes `8GiB`. `--print-config` shows the result, `--check-config` only checks it.\n\n\
         | file | flag | environment | default | since | |\n|---|---|---|---|---|---|\n",
    );
    for option in OPTIONS {
        let default = if option.default.is_empty() { "–".to_owned() } else { format!("`{}`", option.default) };
        let _ = writeln!(
            page,
            "| `{}` | `--{}` | `{}` | {default} | {} | {} |",
            option.key, option.flag, option.variable, option.since, option.doc
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn generated_reference_of_options_is_fresh() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/controller-options.md");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&path, reference()).expect("writable");
        }
        let page = fs::read_to_string(&path).unwrap_or_default();
        assert!(page == reference(), "docs/reference/controller-options.md is stale: run with UPDATE_EXPECT=1");
    }
}
