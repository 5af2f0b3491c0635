//! The tools as models are told of them.

use atlas_model::Tool;
use serde_json::{Map, Value, json};

/// A parameter: its name, its type, whether it is required, and what it is.
type Parameter = (&'static str, &'static str, bool, &'static str);

const ID: Parameter = ("id", "string", true, "The id of the agent, as agent__spawn returned it");
const TASK: Parameter = ("task_id", "string", true, "The id of the task");
const QUESTION: Parameter = ("question", "string", true, "The question");
const OPTIONS: Parameter = ("options", "array", true, "The answers to choose from");

/// The tools of an agent that may start helpers.
pub fn supervisor_tools() -> Vec<Tool> {
    vec![
        tool(
            "agent__spawn",
            "Starts an agent that works in the background, and returns its id at once.",
            &[
                ("agent", "string", true, "The name of the agent"),
                ("prompt", "string", true, "What it has to do, with everything it needs to know"),
                ("task_id", "string", false, "The task that it works on"),
            ],
        ),
        tool("agent__check", "Returns the result of an agent if it finished; does not wait.", &[ID]),
        tool("agent__collect", "Waits until an agent finished, and returns its result.", &[ID]),
        tool("agent__list", "Lists your agents that are running, or finished and not collected.", &[]),
        tool("agent__cancel", "Cancels an agent and everything that it started.", &[ID]),
        tool(
            "agent__reply_escalation",
            "Answers a question of an agent that waits for it.",
            &[
                ("escalation_id", "string", true, "The id of the question"),
                ("reply", "string", true, "The answer. Several answers are separated by commas"),
            ],
        ),
        tool(
            "agent__task_create",
            "Adds a task to your queue. It can wait for other tasks, and start an agent once it can be done.",
            &[
                ("subject", "string", true, "What the task is about"),
                ("description", "string", false, "The task in detail"),
                ("blocked_by", "array", false, "The ids of the tasks that have to be completed before"),
                ("agent", "string", false, "The agent to start once the task can be done"),
                ("prompt", "string", false, "What that agent has to do; required with an agent"),
            ],
        ),
        tool("agent__task_list", "Lists the tasks of your queue.", &[]),
        tool("agent__task_complete", "Marks a task as completed. Tasks that waited for it can be done then.", &[TASK]),
        tool("agent__task_fail", "Marks a task as failed. Tasks that wait for it stay blocked.", &[TASK]),
    ]
}

/// The tools of every agent for messages.
pub fn teammate_tools() -> Vec<Tool> {
    let message = ("message", "string", true, "The message");
    let to = ("id", "string", true, "The id of one of your agents or of an agent beside you, or \"parent\"");
    vec![
        tool("agent__send_message", "Sends a message to another agent of your team.", &[to, message]),
        tool("agent__check_inbox", "Returns the messages that you have not read.", &[]),
    ]
}

/// The tools of every agent for questions to the user.
pub fn user_tools() -> Vec<Tool> {
    vec![
        tool("user__ask", "Asks the user to choose one of some answers, or to give another one.", &[QUESTION, OPTIONS]),
        tool("user__confirm", "Asks the user a question that is answered with yes or no.", &[QUESTION]),
        tool("user__input", "Asks the user for a text.", &[QUESTION]),
        tool("user__checkbox", "Asks the user to choose any number of some answers.", &[QUESTION, OPTIONS]),
    ]
}

fn tool(name: &str, description: &str, parameters: &[Parameter]) -> Tool {
    let property = |(name, kind, _, description): &Parameter| {
        let mut schema = json!({"type": kind, "description": description});
        if *kind == "array" {
            schema["items"] = json!({"type": "string"});
        }
        ((*name).to_owned(), schema)
    };
    let properties: Map<String, Value> = parameters.iter().map(property).collect();
    let required: Vec<&str> =
        parameters.iter().filter(|(_, _, required, _)| *required).map(|(name, ..)| *name).collect();
    Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: json!({"type": "object", "properties": properties, "required": required}),
    }
}
