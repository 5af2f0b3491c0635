//! Documents: links lead somewhere, and every error code has its page.

use std::collections::BTreeSet;
use std::path::Path;

use crate::tree;

const PAGES: &str = "docs/reference/errors";

#[test]
fn links_between_documents_lead_somewhere() {
    let mut findings = Vec::new();
    for path in tree::files(&[".md"]) {
        let folder = tree::root().join(path.parent().unwrap_or(Path::new("")));
        for target in links(&tree::read(&path)) {
            let file = target.split('#').next().unwrap_or_default();
            let outside = target.contains("://") || target.starts_with("mailto:");
            if !outside && !file.is_empty() && !folder.join(file).exists() {
                findings.push(format!("{}: {target}", path.display()));
            }
        }
    }
    tree::report("no such file", &findings);
}

#[test]
fn every_error_code_has_its_page_and_every_page_its_code() {
    let sources = tree::files(&[".rs"]);
    let ours = |path: &&std::path::PathBuf| !path.starts_with("tests");
    let used: BTreeSet<String> = sources.iter().filter(ours).flat_map(|path| codes(&tree::read(path))).collect();
    let page = |path: &std::path::PathBuf| {
        let stem = path.file_stem()?.to_str()?.to_owned();
        (path.starts_with(PAGES) && is_code(&stem)).then_some(stem)
    };
    let paged: BTreeSet<String> = tree::files(&[".md"]).iter().filter_map(page).collect();
    let mut findings: Vec<_> = used.difference(&paged).map(|code| format!("{PAGES}/{code}.md is missing")).collect();
    findings.extend(paged.difference(&used).map(|code| format!("{PAGES}/{code}.md: no program says {code}")));
    tree::report("codes and pages go in pairs", &findings);
}

#[test]
fn error_pages_have_cause_and_cure() {
    let mut findings = Vec::new();
    for path in tree::files(&[".md"]).iter().filter(|path| path.starts_with(PAGES)) {
        let Some(code) = path.file_stem().and_then(|stem| stem.to_str()).filter(|stem| is_code(stem)) else { continue };
        let text = tree::read(path);
        for part in [&format!("# {code}: "), "\n## Cause\n", "\n## What to try\n"] {
            if !text.contains(part) {
                findings.push(format!("{}: {:?} is missing", path.display(), part.trim()));
            }
        }
    }
    tree::report("an error page says the cause, then what to try", &findings);
}

/// Targets of `[text](target)`, fenced blocks left out.
fn links(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let mut rest = if fenced { "" } else { line };
        while let Some((_, after)) = rest.split_once("](") {
            let (target, tail) = after.split_once(')').unwrap_or((after, ""));
            found.push(target.to_owned());
            rest = tail;
        }
    }
    found
}

/// String literals of the form `"E1102"`.
fn codes(text: &str) -> Vec<String> {
    text.split('"').filter(|part| is_code(part)).map(str::to_owned).collect()
}

fn is_code(text: &str) -> bool {
    text.len() == 5 && text.starts_with('E') && text[1..].bytes().all(|byte| byte.is_ascii_digit())
}

#[test]
fn the_helpers_find_what_they_should() {
    assert_eq!(links("see [a](b.md#c) and [d](e)\n```\n[no](x)\n```\n"), ["b.md#c", "e"]);
    assert_eq!(codes(r#"code("E1102", "E11") "E99999""#), ["E1102"]);
}
