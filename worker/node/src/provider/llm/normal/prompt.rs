//! The system prompt of an agent: its own text, blocks about the tools of the platform, and the values of placeholders.

use std::collections::BTreeMap;

use atlas_turn::{AutoContinue, Offered};

const PLANNING: &str = "## Todo list

You have a todo list with the tools todo__init, todo__add, todo__done, todo__list and todo__clear. Plan before you work: set a goal and add all \
steps first. Mark each step as done as soon as it is done, one at a time. Clear the list if the user cancels the work or wants something else. If you stop \
while items are open, you are asked to continue.";

const USER: &str = "## Questions

You can ask the user with the tools user__ask, user__confirm, user__input and user__checkbox: when a decision is not yours, when something cannot be undone, or \
when information is missing that no tool can give you. Do not ask for what you can find out.";

/// The system prompt.
pub(super) fn system(
    own: &str,
    continuation: &AutoContinue,
    variables: &BTreeMap<String, String>,
    tools: &[Offered],
) -> String {
    let mut blocks = vec![own.trim_end()];
    if continuation.enabled && continuation.inject {
        blocks.push(PLANNING);
    }
    blocks.push(USER);
    blocks.retain(|block| !block.is_empty());
    filled(&blocks.join("\n\n"), variables, tools)
}

/// Replaces placeholders. Those of variables have precedence; unknown ones stay.
fn filled(text: &str, variables: &BTreeMap<String, String>, tools: &[Offered]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        let Some((name, behind)) = after.split_once("}}") else {
            filled.push_str("{{");
            rest = after;
            continue;
        };
        match variables.get(name).cloned().or_else(|| special(name, tools)) {
            Some(value) => filled.push_str(&value),
            None => filled.push_str(&format!("{{{{{name}}}}}")),
        }
        rest = behind;
    }
    filled.push_str(rest);
    filled
}

fn special(name: &str, tools: &[Offered]) -> Option<String> {
    Some(match name {
        "__os__" => std::env::consts::OS.to_owned(),
        "__os_family__" => std::env::consts::FAMILY.to_owned(),
        "__arch__" => std::env::consts::ARCH.to_owned(),
        "__tools__" => {
            let line = |(place, tool): (usize, &Offered)| {
                let first = tool.tool.description.lines().next().unwrap_or_default();
                format!("{}. {}: {first}", place + 1, tool.name)
            };
            tools.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use atlas_model::Tool;
    use serde_json::json;

    use super::*;

    fn check(own: &str, enabled: bool, expected: &str) {
        let tool = Tool { name: "t".to_owned(), description: "Reads.\nMore.".to_owned(), input_schema: json!({}) };
        let tools = [Offered { name: "t".to_owned(), tool }];
        let variables = [("v".to_owned(), "{{__tools__}}".to_owned())].into();
        let continuation = AutoContinue { enabled, ..AutoContinue::default() };
        let prompt = system(own, &continuation, &variables, &tools);
        assert_eq!(prompt.replace(USER, "USER").replace(PLANNING, "PLANNING"), expected);
    }

    #[test]
    fn placeholders_are_filled_once() {
        check("a {{v}} {{w}} {{__tools__}} {{", false, "a {{__tools__}} {{w}} 1. t: Reads. {{\n\nUSER");
    }

    #[test]
    fn blocks_follow_the_text_of_the_agent() {
        check("a\n", true, "a\n\nPLANNING\n\nUSER");
        check("", false, "USER");
    }
}
