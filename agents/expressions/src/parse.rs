//! Parses within bounds, and refuses names that nobody knows before anything is evaluated.

use cel::IdedExpr;
use cel::common::ast::{CallExpr, EntryExpr, Expr};
use cel::parser::{ParseErrors, Parser};

use crate::filter::presence;
use crate::functions::is_known;
use crate::{Expression, Problem, SOURCE_BYTES_MAX};

/// Most brackets inside each other.
const NESTED_MAX: usize = 24;
/// Most operators, dots and brackets. The parser is recursive, and so is the evaluation.
const MARKS_MAX: usize = 200;
/// Most parts inside each other.
const DEPTH_MAX: usize = 256;

pub(crate) fn parse(source: &str, variables: &[&str]) -> Result<Expression, Problem> {
    check_bounds(source, SOURCE_BYTES_MAX)?;
    let expression = unchecked(source)?;
    check(&expression, variables, Functions::OfExpressions)?;
    Ok(expression)
}

/// Parses a text within the bounds. Its names are still to be checked.
pub(crate) fn unchecked(source: &str) -> Result<Expression, Problem> {
    let parser = Parser::new().max_recursion_depth(2 * NESTED_MAX as u16).error_recovery_limit(4);
    let (root, positions) = parser.parse_with_source_info(source).map_err(|errors| first(&errors))?;
    Ok(Expression { root, positions })
}

/// Refuses names that are neither variables nor functions.
pub(crate) fn check(expression: &Expression, variables: &[&str], functions: Functions) -> Result<(), Problem> {
    Names { expression, functions, bound: variables.to_vec() }.check(&expression.root, 0)
}

/// Which functions there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Functions {
    OfExpressions,
    /// Those and [`crate::filter::PRESENT`].
    OfFilters,
}

/// Counts in texts as well, so the bounds hold for whatever the parser takes for a text.
pub(crate) fn check_bounds(source: &str, bytes_max: usize) -> Result<(), Problem> {
    let refused = |line, column, text: String| Err(Problem { line, column, text, is_missing: false });
    if source.len() > bytes_max {
        return refused(1, 1, format!("an expression has at most {bytes_max} bytes"));
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
        return Problem { line: 1, column: 1, text: "cannot be read".to_owned(), is_missing: false };
    };
    let place = |at: isize| usize::try_from(at).unwrap_or_default().max(1);
    let visible = |char: char| if char.is_control() { ' ' } else { char };
    let text: String = error.msg.lines().next().unwrap_or_default().trim().chars().map(visible).collect();
    let text = plain(&text).unwrap_or(text);
    Problem { line: place(error.pos.0), column: place(error.pos.1), text, is_missing: false }
}

/// What the parser says about a word that it does not expect, without its own words and the list of all that it does.
fn plain(text: &str) -> Option<String> {
    let text = text.strip_prefix("Syntax error: ")?;
    if let Some(word) = text.strip_prefix("token recognition error at: ") {
        return Some(match word.strip_prefix('\'').and_then(|word| word.strip_suffix('\'')).unwrap_or(word).trim() {
            quoted if quoted.starts_with(['\'', '"']) => format!("{quoted} has no closing quote"),
            word => format!("unexpected {word}"),
        });
    }
    let forms = ["mismatched input ", "extraneous input ", "no viable alternative at input "];
    let rest = forms.iter().find_map(|form| text.strip_prefix(form))?;
    let word = rest.split_once(" expecting ").map_or(rest, |(word, _)| word);
    match word.strip_prefix('\'').and_then(|word| word.strip_suffix('\''))? {
        "<EOF>" => Some("it ends too early".to_owned()),
        word => Some(format!("unexpected {word}")),
    }
}

/// The parts that a part consists of.
pub(crate) fn parts(part: &IdedExpr) -> Vec<&IdedExpr> {
    match &part.expr {
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) | Expr::Struct(_) => Vec::new(),
        Expr::Select(select) => vec![&select.operand],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => {
            let parts = map.entries.iter().flat_map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
                EntryExpr::StructField(field) => vec![&field.value],
            });
            parts.collect()
        }
        Expr::Call(call) => call.target.iter().map(|target| &**target).chain(&call.args).collect(),
        Expr::Comprehension(each) => {
            vec![&each.iter_range, &each.accu_init, &each.loop_cond, &each.loop_step, &each.result]
        }
    }
}

/// The names that are bound at a place of the expression.
struct Names<'a> {
    expression: &'a Expression,
    functions: Functions,
    bound: Vec<&'a str>,
}

impl<'a> Names<'a> {
    /// Whether a call is one of a function that there is.
    fn knows(&self, call: &CallExpr) -> bool {
        let is_presence = self.functions == Functions::OfFilters && presence(call).is_some();
        is_presence || is_known(&call.func_name, call.target.is_some(), call.args.len())
    }

    fn check(&self, part: &'a IdedExpr, depth: usize) -> Result<(), Problem> {
        let wrong = |text: String| Err(self.expression.problem(part.id, text));
        if depth > DEPTH_MAX {
            return wrong(format!("more than {DEPTH_MAX} parts are inside each other"));
        }
        let check = |part: &'a IdedExpr| self.check(part, depth + 1);
        match &part.expr {
            Expr::Unspecified => wrong("cannot be read".to_owned()),
            Expr::Struct(_) => wrong("messages are not supported".to_owned()),
            Expr::Ident(name) if self.bound.contains(&name.as_str()) => Ok(()),
            Expr::Ident(name) => wrong(format!("no such variable: {name}; there are {}", self.bound.join(", "))),
            Expr::Call(call) if !self.knows(call) => {
                wrong(format!("no such function: {} with {} arguments", call.func_name, call.args.len()))
            }
            Expr::Literal(_) | Expr::Select(_) | Expr::List(_) | Expr::Map(_) | Expr::Call(_) => {
                parts(part).into_iter().try_for_each(check)
            }
            Expr::Comprehension(each) => {
                check(&each.iter_range)?;
                check(&each.accu_init)?;
                let bound = self.bound.iter().copied().chain([each.iter_var.as_str(), each.accu_var.as_str()]);
                let inner = Self { expression: self.expression, functions: self.functions, bound: bound.collect() };
                [&each.loop_cond, &each.loop_step, &each.result]
                    .into_iter()
                    .try_for_each(|part| inner.check(part, depth + 1))
            }
        }
    }
}
