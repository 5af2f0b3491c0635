//! The system prompt of an agent: its own text, blocks about the tools of the platform, and the values of placeholders.

use std::collections::BTreeMap;

use atlas_turn::OfferedTool;

const PLANNING: &str = "## Todo list

You have a todo list with the tools todo__init, todo__add, todo__done, todo__list and todo__clear. Plan before you work: set a goal and add all \
steps first. Mark each step as done as soon as it is done, one at a time. Clear the list if the user cancels the work or wants something else. If you stop \
while items are open, you are asked to continue.";

const HELPERS: &str = "## Helpers

You can start other agents with agent__spawn. A helper works in the background: start all that do not depend on each other before you wait for one, go on with your \
own work, then get each result with agent__collect. agent__check looks without waiting, agent__list shows your helpers, agent__cancel ends one. A helper knows only its \
prompt. For work in an order, add tasks with agent__task_create (blocked_by names the tasks before it; with an agent and a prompt, a helper starts once the task can \
be done), and report with agent__task_complete or agent__task_fail; agent__task_list shows them. If a result has pending_escalations, a helper is blocked by a question: \
answer it at once with agent__reply_escalation, from what you know, or after you asked the user.";

const TEAM: &str = "## Team

You can send a message to an agent of your team with agent__send_message: to one of your helpers or one beside you by its id, or to \"parent\". Tell others what you find \
that changes their work. Read your own messages with agent__check_inbox, at least once before you finish.";

const USER: &str = "## Questions

You can ask the user with the tools user__ask, user__confirm, user__input and user__checkbox: when a decision is not yours, when something cannot be undone, or \
when information is missing that no tool can give you. Do not ask for what you can find out.";

/// The name for all tools.
const TOOLS: &str = "__tools__";

/// The blocks that not all agents have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Blocks {
    pub(super) todo: bool,
    pub(super) helpers: bool,
}

/// What placeholders stand for.
pub(super) struct Values<'a> {
    /// The variables of the agent.
    pub(super) variables: &'a BTreeMap<String, String>,
    /// The names that all agents have, but for `__tools__`.
    pub(super) special: BTreeMap<String, String>,
}

/// The system prompt.
pub(super) fn system(own: &str, with: Blocks, values: &Values<'_>, tools: &[OfferedTool]) -> String {
    let mut blocks = vec![own.trim_end()];
    if with.todo {
        blocks.push(PLANNING);
    }
    if with.helpers {
        blocks.push(HELPERS);
    }
    blocks.extend([TEAM, USER]);
    blocks.retain(|block| !block.is_empty());
    filled(&blocks.join("\n\n"), values, tools)
}

/// Replaces placeholders. Those of variables have precedence; unknown ones stay.
fn filled(text: &str, values: &Values<'_>, tools: &[OfferedTool]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        let Some((name, behind)) = after.split_once("}}") else {
            filled.push_str("{{");
            rest = after;
            continue;
        };
        let known = values.variables.get(name).or_else(|| values.special.get(name)).cloned();
        match known.or_else(|| (name == TOOLS).then(|| listed(tools))) {
            Some(value) => filled.push_str(&value),
            None => filled.push_str(&format!("{{{{{name}}}}}")),
        }
        rest = behind;
    }
    filled.push_str(rest);
    filled
}

/// A numbered list of tools.
fn listed(tools: &[OfferedTool]) -> String {
    let line = |(place, tool): (usize, &OfferedTool)| {
        let first = tool.tool.description.lines().next().unwrap_or_default();
        format!("{}. {}: {first}", place + 1, tool.name)
    };
    tools.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use atlas_model::Tool;
    use serde_json::json;

    use super::*;

    fn check(own: &str, with: Blocks, expected: &str) {
        let tool = Tool { name: "t".to_owned(), description: "Reads.\nMore.".to_owned(), input_schema: json!({}) };
        let tools = [OfferedTool { name: "t".to_owned(), tool }];
        let variables = [("v".to_owned(), "{{__tools__}}".to_owned())].into();
        let special = [("__now__".to_owned(), "today".to_owned())].into();
        let mut prompt = system(own, with, &Values { variables: &variables, special }, &tools);
        for (block, name) in [(USER, "USER"), (TEAM, "TEAM"), (HELPERS, "HELPERS"), (PLANNING, "PLANNING")] {
            prompt = prompt.replace(block, name);
        }
        assert_eq!(prompt, expected);
    }

    #[test]
    fn placeholders_are_filled_once() {
        let none = Blocks::default();
        check("a {{v}} {{w}} {{__tools__}} {{", none, "a {{__tools__}} {{w}} 1. t: Reads. {{\n\nTEAM\n\nUSER");
        check("{{__now__}}, {{ v }}", none, "today, {{ v }}\n\nTEAM\n\nUSER");
    }

    #[test]
    fn blocks_follow_the_text_of_the_agent() {
        let all = Blocks { todo: true, helpers: true };
        check("a\n", all, "a\n\nPLANNING\n\nHELPERS\n\nTEAM\n\nUSER");
        check("", Blocks::default(), "TEAM\n\nUSER");
    }
}
