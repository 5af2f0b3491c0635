//! Filters: conditions on one object, whose members are their variables.
//!
//! A filter is written for many objects that do not all have the same members. So a member that is missing makes it false instead of an
//! error, and `has` takes any part: it is there, and not null. Members may have names that the language reserves, such as `namespace`.

#[cfg(test)]
mod tests;
mod words;

use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr};
use serde_json::Value;

use crate::evaluate::{self, Unknown};
use crate::parse::{self, Functions, parts};
use crate::{Expression, Problem};

pub(crate) use words::PRESENT;

/// Most bytes of a filter: people list the ids of many objects in one.
const FILTER_BYTES_MAX: usize = 64 << 10;

/// A filter that was parsed.
#[derive(Debug)]
pub struct Filter {
    expression: Expression,
    /// Names of members as the parser reads them, and as they were written.
    names: Vec<(String, String)>,
}

impl Filter {
    /// Parses a filter. Any name may be one of a member.
    pub fn parse(source: &str) -> Result<Self, Problem> {
        parse::check_bounds(&words::outline(source), FILTER_BYTES_MAX)?;
        let readable = words::readable(source);
        let expression = parse::unchecked(&readable)?;
        let mut found = Vec::new();
        free(&expression.root, &mut Vec::new(), &mut found);
        let names = found.into_iter().map(|name| (name.to_owned(), words::written(name)));
        let names: Vec<_> = names.collect();
        let variables: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
        parse::check(&expression, &variables, Functions::OfFilters)?;
        Ok(Self { expression, names })
    }

    /// The members that it uses, by their names; a member that it uses twice is named once.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|(_, written)| written.as_str())
    }

    /// Whether it is true for an object.
    pub fn admits(&self, object: &Value) -> Result<bool, Problem> {
        let members = self.names.iter().filter_map(|(name, written)| Some((name.as_str(), object.get(written)?)));
        let variables: Vec<(&str, &Value)> = members.collect();
        match evaluate::evaluate(&self.expression, &variables, Unknown::IsMissing, 0).0 {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(self.expression.wrong_kind(&other)),
            Err(problem) if problem.is_missing => Ok(false),
            Err(problem) => Err(problem),
        }
    }
}

/// The argument, if a call asks whether something is there.
pub(crate) fn presence(call: &CallExpr) -> Option<&IdedExpr> {
    match &call.args[..] {
        [argument] if call.target.is_none() && call.func_name == PRESENT => Some(argument),
        _ => None,
    }
}

/// Collects the names that no loop gives to its items.
fn free<'a>(part: &'a IdedExpr, bound: &mut Vec<&'a str>, found: &mut Vec<&'a str>) {
    match &part.expr {
        Expr::Ident(name) if !bound.contains(&name.as_str()) && !found.contains(&name.as_str()) => found.push(name),
        Expr::Comprehension(each) => {
            free(&each.iter_range, bound, found);
            free(&each.accu_init, bound, found);
            bound.extend([each.iter_var.as_str(), each.accu_var.as_str()]);
            for inner in [&each.loop_cond, &each.loop_step, &each.result] {
                free(inner, bound, found);
            }
            bound.truncate(bound.len().saturating_sub(2));
        }
        _ => parts(part).into_iter().for_each(|part| free(part, bound, found)),
    }
}
