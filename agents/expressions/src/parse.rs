//! Parses within bounds, and refuses names that nobody knows before anything is evaluated.

use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr};
use cel::parser::{ParseErrors, Parser};

use crate::functions::is_known;
use crate::{Expression, Problem, SOURCE_BYTES_MAX};

/// Most brackets inside each other.
const NESTED_MAX: usize = 24;
/// Most operators, dots and brackets. The parser is recursive, and so is the evaluation.
const MARKS_MAX: usize = 200;
/// Most parts inside each other.
const DEPTH_MAX: usize = 256;

pub(crate) fn parse(source: &str, variables: &[&str]) -> Result<Expression, Problem> {
    check_bounds(source)?;
    let parser = Parser::new().max_recursion_depth(2 * NESTED_MAX as u16).error_recovery_limit(4);
    let (root, positions) = parser.parse_with_source_info(source).map_err(|errors| first(&errors))?;
    let expression = Expression { root, positions };
    let names = Names { expression: &expression, bound: variables.to_vec() };
    names.check(&expression.root, 0)?;
    Ok(expression)
}

/// Counts in texts as well, so the bounds hold for whatever the parser takes for a text.
fn check_bounds(source: &str) -> Result<(), Problem> {
    let refused = |line, column, text: String| Err(Problem { line, column, text });
    if source.len() > SOURCE_BYTES_MAX {
        return refused(1, 1, format!("an expression has at most {SOURCE_BYTES_MAX} bytes"));
    }
    let (mut line, mut column, mut nested, mut marks) = (1, 0, 0_usize, 0_usize);
    for char in source.chars() {
        column += 1;
        match char {
            '\n' => (line, column) = (line + 1, 0),
            '(' | '[' | '{' => nested += 1,
            ')' | ']' | '}' => nested = nested.saturating_sub(1),
            _ => {}
        }
        marks += usize::from("([{.+-*/%!?:<>=&|,".contains(char));
        if nested > NESTED_MAX {
            return refused(line, column, format!("more than {NESTED_MAX} brackets are inside each other"));
        }
        if marks > MARKS_MAX {
            return refused(line, column, format!("more than {MARKS_MAX} operators and brackets"));
        }
    }
    Ok(())
}

fn first(errors: &ParseErrors) -> Problem {
    let Some(error) = errors.errors.first() else {
        return Problem { line: 1, column: 1, text: "cannot be read".to_owned() };
    };
    let place = |at: isize| usize::try_from(at).unwrap_or_default().max(1);
    let visible = |char: char| if char.is_control() { ' ' } else { char };
    let text = error.msg.lines().next().unwrap_or_default().trim().chars().map(visible).collect();
    Problem { line: place(error.pos.0), column: place(error.pos.1), text }
}

/// The names that are bound at a place of the expression.
struct Names<'a> {
    expression: &'a Expression,
    bound: Vec<&'a str>,
}

impl<'a> Names<'a> {
    fn check(&self, part: &'a IdedExpr, depth: usize) -> Result<(), Problem> {
        let wrong = |text: String| Err(self.expression.problem(part.id, text));
        if depth > DEPTH_MAX {
            return wrong(format!("more than {DEPTH_MAX} parts are inside each other"));
        }
        let check = |part: &'a IdedExpr| self.check(part, depth + 1);
        match &part.expr {
            Expr::Unspecified => wrong("cannot be read".to_owned()),
            Expr::Literal(_) => Ok(()),
            Expr::Ident(name) if self.bound.contains(&name.as_str()) => Ok(()),
            Expr::Ident(name) => wrong(format!("no such variable: {name}; there are {}", self.bound.join(", "))),
            Expr::Select(select) => check(&select.operand),
            Expr::List(list) => list.elements.iter().try_for_each(check),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => check(&entry.key).and_then(|()| check(&entry.value)),
                EntryExpr::StructField(field) => check(&field.value),
            }),
            Expr::Struct(_) => wrong("messages are not supported".to_owned()),
            Expr::Call(call) => {
                if !is_known(&call.func_name, call.target.is_some(), call.args.len()) {
                    return wrong(format!("no such function: {} with {} arguments", call.func_name, call.args.len()));
                }
                call.target.iter().map(|target| &**target).chain(&call.args).try_for_each(check)
            }
            Expr::Comprehension(each) => {
                check(&each.iter_range)?;
                check(&each.accu_init)?;
                let bound = self.bound.iter().copied().chain([each.iter_var.as_str(), each.accu_var.as_str()]);
                let inner = Self { expression: self.expression, bound: bound.collect() };
                [&each.loop_cond, &each.loop_step, &each.result]
                    .into_iter()
                    .try_for_each(|part| inner.check(part, depth + 1))
            }
        }
    }
}
