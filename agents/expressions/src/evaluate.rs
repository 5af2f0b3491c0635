//! Evaluates an expression, and counts the steps.

use std::borrow::Cow;
use std::collections::BTreeMap;

use cel::IdedExpr;
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators as op};
use regex::Regex;
use serde_json::{Map, Number, Value};

use crate::filter::presence;
use crate::operators::kind;
use crate::{Expression, Problem, STEPS_MAX, functions, operators};

/// A value of the data, or one that was made.
pub(crate) type Cell<'a> = Cow<'a, Value>;

/// An evaluation.
pub(crate) struct Evaluation<'a> {
    expression: &'a Expression,
    /// The innermost last.
    variables: Vec<(&'a str, Cell<'a>)>,
    steps: u64,
    unknown: Unknown,
    /// Patterns that were compiled.
    pub(crate) patterns: BTreeMap<String, Regex>,
}

/// What a variable is that is not given.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unknown {
    IsNull,
    IsMissing,
}

/// The value, and the steps that it took with those before.
pub(crate) fn evaluate(
    expression: &Expression,
    variables: &[(&str, &Value)],
    unknown: Unknown,
    steps: u64,
) -> (Result<Value, Problem>, u64) {
    let variables = variables.iter().map(|(name, value)| (*name, Cow::Borrowed(*value))).collect();
    let mut evaluation = Evaluation { expression, variables, steps, unknown, patterns: BTreeMap::new() };
    let value = evaluation.part(&expression.root).map(Cow::into_owned);
    (value, evaluation.steps)
}

impl<'a> Evaluation<'a> {
    /// Counts steps.
    pub(crate) fn spend(&mut self, steps: u64) -> Result<(), String> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > STEPS_MAX { Err(format!("takes more than {STEPS_MAX} steps")) } else { Ok(()) }
    }

    fn part(&mut self, part: &'a IdedExpr) -> Result<Cell<'a>, Problem> {
        let found = match self.spend(1) {
            Ok(()) => self.expr(part),
            Err(text) => Err(Wrong::Here(text)),
        };
        found.map_err(|wrong| match wrong {
            Wrong::Here(text) => self.expression.problem(part.id, text),
            Wrong::Missing(text) => Problem { is_missing: true, ..self.expression.problem(part.id, text) },
            Wrong::Inside(problem) => problem,
        })
    }

    fn expr(&mut self, part: &'a IdedExpr) -> Result<Cell<'a>, Wrong> {
        match &part.expr {
            Expr::Unspecified | Expr::Struct(_) => Err("cannot be evaluated".to_owned().into()),
            Expr::Literal(literal) => Ok(Cow::Owned(literal_of(literal)?)),
            Expr::Ident(name) => {
                let found = self.variables.iter().rev().find(|(known, _)| known == name);
                let Some(value) = found.map(|(_, value)| value.clone()) else { return self.absent(name) };
                self.copied(&value)?;
                Ok(value)
            }
            Expr::Select(select) => {
                let operand = self.part(&select.operand)?;
                let found = operators::member(operand, &select.field);
                match found {
                    _ if select.test => Ok(Cow::Owned(Value::Bool(found.is_ok()))),
                    found => Ok(found?),
                }
            }
            Expr::List(list) => {
                let mut values = Vec::with_capacity(list.elements.len());
                for element in &list.elements {
                    let value = self.part(element)?;
                    values.push(self.owned(value)?);
                }
                Ok(Cow::Owned(Value::Array(values)))
            }
            Expr::Map(map) => {
                let mut members = Map::new();
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else { return Err("is not a map".to_owned().into()) };
                    let key = self.part(&entry.key)?;
                    let Value::String(key) = &*key else {
                        return Err(format!("a key is {}, not a text", kind(&key)).into());
                    };
                    let key = key.clone();
                    let value = self.part(&entry.value)?;
                    members.insert(key, self.owned(value)?);
                }
                Ok(Cow::Owned(Value::Object(members)))
            }
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(each) => self.comprehension(each),
        }
    }

    /// A value to keep. Copies of data cost steps.
    fn owned(&mut self, value: Cell<'a>) -> Result<Value, String> {
        match value {
            Cow::Owned(value) => Ok(value),
            Cow::Borrowed(value) => {
                self.spend(operators::weight(value))?;
                Ok(value.clone())
            }
        }
    }

    /// A variable that a loop made is copied where it is used.
    fn copied(&mut self, value: &Cell<'a>) -> Result<(), String> {
        match value {
            Cow::Owned(value) => self.spend(operators::weight(value)),
            Cow::Borrowed(_) => Ok(()),
        }
    }

    /// A variable that is not given.
    fn absent(&self, name: &str) -> Result<Cell<'a>, Wrong> {
        match self.unknown {
            Unknown::IsNull => Ok(Cow::Owned(Value::Null)),
            Unknown::IsMissing => Err(Wrong::Missing(format!("no such member: {name}"))),
        }
    }

    /// Whether a part is there, and not null.
    fn is_present(&mut self, part: &'a IdedExpr) -> Result<bool, Problem> {
        match self.part(part) {
            Ok(value) => Ok(!value.is_null()),
            Err(problem) if problem.is_missing => Ok(false),
            Err(problem) => Err(problem),
        }
    }

    fn call(&mut self, call: &'a CallExpr) -> Result<Cell<'a>, Wrong> {
        let made = |value| Ok(Cow::Owned(Value::Bool(value)));
        if let Some(part) = presence(call) {
            return made(self.is_present(part)?);
        }
        match (call.func_name.as_str(), &call.args[..]) {
            (op::CONDITIONAL, [condition, yes, no]) => {
                let holds = self.bool(condition)?;
                Ok(self.part(if holds { yes } else { no })?)
            }
            (op::LOGICAL_AND, [left, right]) => made(self.logical(left, right, false)?),
            (op::LOGICAL_OR, [left, right]) => made(self.logical(left, right, true)?),
            (op::LOGICAL_NOT, [value]) => made(!self.bool(value)?),
            // A condition that cannot be told does not end a loop.
            (op::NOT_STRICTLY_FALSE, [value]) => made(self.bool(value).unwrap_or(true)),
            (name, arguments) => {
                let mut values = Vec::with_capacity(arguments.len() + 1);
                for argument in call.target.iter().map(|target| &**target).chain(arguments) {
                    values.push(self.part(argument)?);
                }
                functions::call(self, name, values)
            }
        }
    }

    fn bool(&mut self, part: &'a IdedExpr) -> Result<bool, Problem> {
        match &*self.part(part)? {
            Value::Bool(value) => Ok(*value),
            other => Err(self.expression.problem(part.id, format!("is {}, not true or false", kind(other)))),
        }
    }

    /// `decides` is the value of one side that decides, whatever the other side is.
    fn logical(&mut self, left: &'a IdedExpr, right: &'a IdedExpr, decides: bool) -> Result<bool, Problem> {
        match self.bool(left) {
            Ok(left) if left == decides => Ok(decides),
            Ok(_) => self.bool(right),
            Err(problem) => match self.bool(right) {
                Ok(right) if right == decides => Ok(decides),
                _ => Err(problem),
            },
        }
    }

    fn comprehension(&mut self, each: &'a ComprehensionExpr) -> Result<Cell<'a>, Wrong> {
        let range = self.part(&each.iter_range)?;
        let items: Vec<Cell<'a>> = match range {
            Cow::Borrowed(Value::Array(items)) => items.iter().map(Cow::Borrowed).collect(),
            Cow::Owned(Value::Array(items)) => items.into_iter().map(Cow::Owned).collect(),
            Cow::Borrowed(Value::Object(members)) => {
                members.keys().map(|key| Cow::Owned(Value::String(key.clone()))).collect()
            }
            Cow::Owned(Value::Object(members)) => {
                members.into_iter().map(|(key, _)| Cow::Owned(Value::String(key))).collect()
            }
            other => return Err(format!("is {}, not a list or map", kind(&other)).into()),
        };
        self.spend(items.len() as u64)?;
        let depth = self.variables.len();
        let accumulated = self.part(&each.accu_init)?;
        self.variables.push((&each.accu_var, accumulated));
        let result = self.iterate(each, items, depth);
        let result = result.and_then(|()| self.part(&each.result));
        self.variables.truncate(depth);
        Ok(result?)
    }

    fn iterate(
        &mut self,
        each: &'a ComprehensionExpr,
        items: Vec<Cell<'a>>,
        accumulator: usize,
    ) -> Result<(), Problem> {
        for item in items {
            self.variables.truncate(accumulator + 1);
            self.variables.push((&each.iter_var, item));
            let goes_on = matches!(each.loop_cond.expr, Expr::Literal(_)) || self.bool(&each.loop_cond)?;
            if !goes_on {
                break;
            }
            self.step(&each.loop_step, each, accumulator)?;
        }
        self.variables.truncate(accumulator + 1);
        Ok(())
    }

    /// Lists that a loop makes grow in place.
    fn step(&mut self, step: &'a IdedExpr, each: &'a ComprehensionExpr, accumulator: usize) -> Result<(), Problem> {
        let is_accumulator = |part: &IdedExpr| matches!(&part.expr, Expr::Ident(name) if *name == each.accu_var);
        if let Expr::Call(call) = &step.expr {
            match (call.func_name.as_str(), &call.args[..]) {
                (op::CONDITIONAL, [condition, yes, no]) if is_accumulator(no) => {
                    return if self.bool(condition)? { self.step(yes, each, accumulator) } else { Ok(()) };
                }
                (op::ADD, [list, more]) if is_accumulator(list) => {
                    let more = self.part(more)?;
                    let more = self.owned(more).map_err(|text| self.expression.problem(step.id, text))?;
                    if let (Some((_, Cow::Owned(Value::Array(list)))), Value::Array(more)) =
                        (self.variables.get_mut(accumulator), more)
                    {
                        list.extend(more);
                    }
                    return Ok(());
                }
                _ => {}
            }
        }
        let value = self.part(step)?;
        if let Some((_, accumulated)) = self.variables.get_mut(accumulator) {
            *accumulated = value;
        }
        Ok(())
    }
}

/// A problem with this part, or with one inside it.
pub(crate) enum Wrong {
    Here(String),
    /// Data has no such member or item.
    Missing(String),
    Inside(Problem),
}

impl From<String> for Wrong {
    fn from(text: String) -> Self {
        Self::Here(text)
    }
}

impl From<Problem> for Wrong {
    fn from(problem: Problem) -> Self {
        Self::Inside(problem)
    }
}

fn literal_of(literal: &LiteralValue) -> Result<Value, String> {
    Ok(match literal {
        LiteralValue::Null => Value::Null,
        LiteralValue::Boolean(value) => Value::Bool(*value.inner()),
        LiteralValue::Int(value) => Value::from(*value.inner()),
        LiteralValue::UInt(value) => Value::from(*value.inner()),
        LiteralValue::Double(value) => {
            Number::from_f64(*value.inner()).map(Value::Number).ok_or_else(|| "is no number".to_owned())?
        }
        LiteralValue::String(value) => Value::String(value.inner().to_owned()),
        LiteralValue::Bytes(_) => return Err("bytes are not supported".to_owned()),
    })
}
