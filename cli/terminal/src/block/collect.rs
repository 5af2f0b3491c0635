//! The blocks of code of a complete text.

use super::fence::{is_end, language, without_indent};
use super::start::{self, Container, Context, Leaf};

/// The languages and texts of the fenced blocks of a text.
pub(crate) fn fences(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut containers: Vec<Container> = Vec::new();
    let mut open: Option<(char, usize, usize)> = None;
    let mut has_paragraph = false;
    for full in text.split_inclusive('\n') {
        let line = full.trim_end_matches(['\n', '\r']);
        if let Some((mark, count, indent)) = open {
            match start::within_quotes(full, &containers) {
                Some(content) if is_end(content, mark, count) => {
                    open = None;
                    continue;
                }
                Some(content) => {
                    if let Some((_, text)) = found.last_mut() {
                        text.push_str(without_indent(content, indent));
                    }
                    continue;
                }
                None => open = None,
            }
        }
        let context = Context { containers: &containers, has_paragraph, is_forced: true };
        let Some(start) = start::read(line, true, context) else { continue };
        containers.truncate(start.kept);
        containers.extend(start.added);
        has_paragraph = matches!(start.leaf, Leaf::Text | Leaf::Row);
        if let Leaf::Fence { mark, count, indent } = start.leaf {
            let info = line.get(start.at..).unwrap_or_default().trim_start_matches(mark);
            found.push((language(info).to_owned(), String::new()));
            open = Some((mark, count, indent));
        }
    }
    found
}
