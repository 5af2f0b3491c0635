//! The todo list: what an agent plans, and the tools by which it keeps the plan (compatibility §32).

use std::fmt;

use atlas_model::Tool;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What the names of the tools begin with.
pub const PREFIX: &str = "todo__";
/// The names of the tools, as declared by [`tools`].
pub const NAMES: [&str; 5] = ["todo__init", "todo__add", "todo__done", "todo__list", "todo__clear"];

/// Most items of a list. A model that adds more is told so.
pub const ITEMS_MAX: usize = 1000;
/// Most bytes of an item or a goal.
pub const TEXT_BYTES_MAX: usize = 16 << 10;

/// A plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TodoList {
    /// Empty if none was given.
    pub goal: String,
    #[serde(rename = "todos")]
    pub items: Vec<Item>,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    pub id: u64,
    #[serde(rename = "desc")]
    pub text: String,
    pub done: bool,
}

impl TodoList {
    /// How many items are not done.
    pub fn open(&self) -> usize {
        self.items.iter().filter(|item| !item.done).count()
    }

    /// Runs a tool; none if there is no tool of this name.
    pub fn call(&mut self, name: &str, arguments: &Value) -> Option<Value> {
        let text = |member: &str| arguments.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
        let answer = match name.strip_prefix(PREFIX)? {
            "init" => self.init(text("goal")),
            "add" => self.add(text("task")),
            "done" => self.done(arguments.get("id")),
            "list" => self.list(),
            "clear" => {
                *self = Self::default();
                json!({"status": "ok", "message": "Todo list cleared"})
            }
            _ => return None,
        };
        Some(answer)
    }

    fn init(&mut self, goal: String) -> Value {
        if goal.len() > TEXT_BYTES_MAX {
            return json!({"error": format!("the goal is longer than {TEXT_BYTES_MAX} bytes")});
        }
        *self = Self { goal, items: Vec::new() };
        json!({"status": "ok", "message": "Initialized new todo list"})
    }

    fn add(&mut self, text: String) -> Value {
        if text.is_empty() {
            return json!({"error": "task description is required"});
        }
        if text.len() > TEXT_BYTES_MAX {
            return json!({"error": format!("the task is longer than {TEXT_BYTES_MAX} bytes")});
        }
        if self.items.len() >= ITEMS_MAX {
            return json!({"error": format!("the list is full: it has {ITEMS_MAX} items")});
        }
        let id = self.items.iter().map(|item| item.id).max().unwrap_or(0).saturating_add(1);
        self.items.push(Item { id, text, done: false });
        json!({"status": "ok", "id": id})
    }

    /// Models write the id as a number or as its digits.
    fn done(&mut self, id: Option<&Value>) -> Value {
        let id = id.and_then(|id| id.as_u64().or_else(|| id.as_str()?.parse().ok()));
        let Some(id) = id else { return json!({"error": "id is required and must be a number"}) };
        match self.items.iter_mut().find(|item| item.id == id) {
            Some(item) => {
                item.done = true;
                json!({"status": "ok", "message": format!("Marked todo {id} as done")})
            }
            None => json!({"error": format!("Todo {id} not found")}),
        }
    }

    /// A list without items has no goal to show, as in Loki.
    fn list(&self) -> Value {
        let goal = if self.items.is_empty() { "" } else { &self.goal };
        json!({"goal": goal, "todos": self.items})
    }
}

/// The list as a model gets it with a continuation.
impl fmt::Display for TodoList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.goal.is_empty() {
            writeln!(f, "Goal: {}", self.goal)?;
        }
        write!(f, "Progress: {}/{} completed", self.items.len() - self.open(), self.items.len())?;
        for Item { id, text, done } in &self.items {
            let mark = if *done { '✓' } else { '○' };
            write!(f, "\n  {mark} {id}. {text}")?;
        }
        Ok(())
    }
}

/// The tools of the list.
pub fn tools() -> Vec<Tool> {
    let tool = |name: &str, description: &str, properties: Value, required: Value| Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: json!({"type": "object", "properties": properties, "required": required}),
    };
    let [init, add, done, list, clear] = NAMES;
    vec![
        tool(
            init,
            "Starts a new todo list. An existing one is replaced.",
            json!({"goal": {"type": "string", "description": "What is reached when all items are done"}}),
            json!(["goal"]),
        ),
        tool(
            add,
            "Adds an item to the todo list, and returns its id.",
            json!({"task": {"type": "string", "description": "One step that can be checked off"}}),
            json!(["task"]),
        ),
        tool(
            done,
            "Marks an item of the todo list as done.",
            json!({"id": {"type": "integer", "description": "The id of the item"}}),
            json!(["id"]),
        ),
        tool(list, "Returns the goal and all items of the todo list.", json!({}), json!([])),
        tool(
            clear,
            "Empties the todo list: the user cancelled the work, or wants something else.",
            json!({}),
            json!([]),
        ),
    ]
}
