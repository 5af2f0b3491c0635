//! Macros: lines for a session, with variables that the caller fills in.

use std::collections::BTreeMap;

use crate::substitution::substitute;
use crate::yaml::{self, FileError, Node};

/// How deep macros may call each other.
pub const NESTING_MAX: usize = 8;
/// Steps of one macro.
const STEPS_MAX: usize = 1_000;
/// Text that a step may become when its variables are replaced.
const STEP_BYTES_MAX: usize = 1 << 20;

/// Why a macro was not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MacroError {
    /// A variable has no value and no default.
    #[error("the macro needs a value for \"{variable}\"; usage: {usage}")]
    ValueMissing {
        /// The variable.
        variable: String,
        /// How the macro is called.
        usage: String,
    },
    /// There are more arguments than variables.
    #[error("the macro takes at most {most} arguments, and there are {count}; usage: {usage}")]
    ArgumentsLeft {
        /// How many it takes.
        most: usize,
        /// How many there are.
        count: usize,
        /// How the macro is called.
        usage: String,
    },
    /// A value is given for a name that the macro does not have.
    #[error("the macro has no variable \"{name}\"; usage: {usage}")]
    VariableUnknown {
        /// The name.
        name: String,
        /// How the macro is called.
        usage: String,
    },
    /// A variable has a value by its name and by its place.
    #[error("\"{variable}\" has two values: give it by its name or by its place; usage: {usage}")]
    ValueTwice {
        /// The variable.
        variable: String,
        /// How the macro is called.
        usage: String,
    },
    /// A step became too long.
    #[error("step {step} has more than {max} bytes with its values: pass less text")]
    StepTooLong {
        /// The number of the step, from 1.
        step: usize,
        /// The limit.
        max: usize,
    },
    /// Macros call each other without an end.
    #[error("macros call each other more than {NESTING_MAX} deep: one of them may call itself")]
    TooDeep,
}

/// A variable of a macro.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MacroVariable {
    /// Its name: `{{name}}` in steps.
    pub name: String,
    /// Its value where none is given.
    pub default: Option<String>,
    /// Whether it takes all arguments that are left, joined with blanks. Only the last variable may.
    pub rest: bool,
}

/// A macro.
///
/// ```
/// # use atlas_persona::Macro;
/// # use std::collections::BTreeMap;
/// let found = Macro::parse("variables:\n- name: file\nsteps:\n- .file {{file}} -- review it\n")?;
/// assert_eq!(found.usage("review"), "review <file>");
/// let steps = found.steps("review", &["a.rs".to_owned()], &BTreeMap::new()).expect("one value for one variable");
/// assert_eq!(steps, [".file a.rs -- review it"]);
/// # Ok::<(), atlas_persona::FileError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Macro {
    /// The lines that a session reads, in order.
    pub steps: Vec<String>,
    /// The variables, in the order of their arguments.
    pub variables: Vec<MacroVariable>,
}

impl Macro {
    /// Reads the YAML of a macro: at most 256 KiB, and 1,000 steps of one line each.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let root = yaml::read(text, 0)?;
        let (mut steps, mut variables) = (None, Vec::new());
        for (name, value, place) in root.members("a macro")? {
            match name {
                "steps" => steps = Some(read_steps(value)?),
                "variables" if value.is_null() => {}
                "variables" => variables = read_variables(value)?,
                _ => {
                    let problem = format!("a macro has \"steps\" and \"variables\", and no \"{name}\"");
                    return Err(FileError::new(place, problem));
                }
            }
        }
        let steps = steps.ok_or_else(|| FileError::new(root.place, "\"steps\" is missing: list the lines to run"))?;
        Ok(Self { steps, variables })
    }

    /// How the macro is called: `<x>` is required, `[x]` is not, and `...` takes the rest.
    pub fn usage(&self, name: &str) -> String {
        let mut usage = name.to_owned();
        for MacroVariable { name, default, rest } in &self.variables {
            let (open, close) = if default.is_some() { ('[', ']') } else { ('<', '>') };
            let more = if *rest { "..." } else { "" };
            usage.push_str(&format!(" {open}{name}{close}{more}"));
        }
        usage
    }

    /// The values of the variables, from arguments by place and by name. `name` is that of the macro, for errors.
    pub fn bind(
        &self,
        name: &str,
        arguments: &[String],
        named: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, MacroError> {
        let usage = || self.usage(name);
        if let Some(name) = named.keys().find(|name| !self.variables.iter().any(|variable| variable.name == **name)) {
            return Err(MacroError::VariableUnknown { name: name.clone(), usage: usage() });
        }
        let mut values = BTreeMap::new();
        let mut left = arguments;
        for variable in &self.variables {
            let taken = match left {
                [] => None,
                all if variable.rest => {
                    left = &[];
                    Some(all.join(" "))
                }
                [first, others @ ..] => {
                    left = others;
                    Some(first.clone())
                }
            };
            let named = named.get(&variable.name).cloned();
            if taken.is_some() && named.is_some() {
                return Err(MacroError::ValueTwice { variable: variable.name.clone(), usage: usage() });
            }
            let value = taken
                .or(named)
                .or_else(|| variable.default.clone())
                .ok_or_else(|| MacroError::ValueMissing { variable: variable.name.clone(), usage: usage() })?;
            values.insert(variable.name.clone(), value);
        }
        if !left.is_empty() {
            let (most, count) = (self.variables.len(), arguments.len());
            return Err(MacroError::ArgumentsLeft { most, count, usage: usage() });
        }
        Ok(values)
    }

    /// The lines to run. What a value contains is not replaced again, and stays one line: line ends in values are blanks.
    pub fn steps(
        &self,
        name: &str,
        arguments: &[String],
        named: &BTreeMap<String, String>,
    ) -> Result<Vec<String>, MacroError> {
        let mut values = self.bind(name, arguments, named)?;
        // A value with a line end would add a step that nobody wrote into the macro.
        for value in values.values_mut().filter(|value| value.contains(['\n', '\r'])) {
            *value = value.lines().collect::<Vec<_>>().join(" ").replace('\r', " ");
        }
        let mut steps = Vec::with_capacity(self.steps.len());
        for (index, step) in self.steps.iter().enumerate() {
            let longest = values.values().map(String::len).max().unwrap_or_default();
            let count = step.matches("{{").count();
            let step = if step.len() + count.saturating_mul(longest) > STEP_BYTES_MAX {
                return Err(MacroError::StepTooLong { step: index + 1, max: STEP_BYTES_MAX });
            } else {
                substitute(step, |name| values.get(name).map(String::as_str))
            };
            steps.push(step);
        }
        Ok(steps)
    }
}

/// The depth of a macro that one at `depth` calls; that of the first is 1.
pub fn nested(depth: usize) -> Result<usize, MacroError> {
    if depth >= NESTING_MAX { Err(MacroError::TooDeep) } else { Ok(depth + 1) }
}

fn read_steps(value: &Node) -> Result<Vec<String>, FileError> {
    let list = value.list("\"steps\"")?;
    if list.is_empty() || list.len() > STEPS_MAX {
        return Err(FileError::new(value.place, format!("\"steps\" has 1 to {STEPS_MAX} lines")));
    }
    let step = |node: &Node| {
        let text = node.text("a step")?.trim();
        if text.is_empty() || text.contains(['\n', '\r']) {
            return Err(FileError::new(node.place, "a step is one line: write one list item a line"));
        }
        Ok(text.to_owned())
    };
    list.iter().map(step).collect()
}

fn read_variables(value: &Node) -> Result<Vec<MacroVariable>, FileError> {
    let list = value.list("\"variables\"")?;
    let mut variables: Vec<MacroVariable> = Vec::with_capacity(list.len());
    for (index, node) in list.iter().enumerate() {
        let variable = read_variable(node)?;
        if variables.iter().any(|known| known.name == variable.name) {
            let problem = format!("there are two variables \"{}\": rename one", variable.name);
            return Err(FileError::new(node.place, problem));
        }
        if variable.rest && index + 1 < list.len() {
            let problem = format!("\"{}\" takes the rest of the arguments: move it to the end", variable.name);
            return Err(FileError::new(node.place, problem));
        }
        variables.push(variable);
    }
    Ok(variables)
}

fn read_variable(node: &Node) -> Result<MacroVariable, FileError> {
    let (mut name, mut default, mut rest) = (None, None, false);
    for (member, value, place) in node.members("a variable")? {
        match member {
            "name" => {
                let text = value.text("\"name\"")?;
                let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
                if text.is_empty() || text.len() > 64 || !text.chars().all(is_name) {
                    let problem = "a name has 1 to 64 letters of a-z, A-Z, 0-9, \"_\" and \"-\"";
                    return Err(FileError::new(value.place, problem));
                }
                name = Some(text.to_owned());
            }
            "default" if value.is_null() => {}
            "default" => default = Some(value.text("\"default\"")?.to_owned()),
            "rest" => rest = value.boolean("\"rest\"")?,
            _ => {
                let problem = format!("a variable has \"name\", \"default\" and \"rest\", and no \"{member}\"");
                return Err(FileError::new(place, problem));
            }
        }
    }
    let name = name.ok_or_else(|| FileError::new(node.place, "the variable has no \"name\""))?;
    Ok(MacroVariable { name, default, rest })
}

#[cfg(test)]
mod tests;
