//! The lines between answers: tool calls, their results, and what a turn took.

use crate::Style;

/// What a turn took.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TurnFigures {
    /// Tokens that the model read.
    pub tokens_input: u64,
    /// Tokens that the model wrote.
    pub tokens_output: u64,
    /// US dollars; none if nobody knows the price.
    pub cost_usd: Option<f64>,
    /// Milliseconds from the question to the end of the answer.
    pub duration_ms: u64,
}

/// One line about a tool call, with its line end. `arguments` is JSON; what does not fit is cut, with the count of characters left out.
pub fn tool_call(style: &Style, name: &str, arguments: &str) -> String {
    let _ = style;
    format!("{name} {arguments}\n")
}

/// The result of a tool call: at most three lines, and how many more there are.
pub fn tool_result(style: &Style, name: &str, ok: bool, text: &str) -> String {
    let _ = (style, ok);
    format!("{name}: {text}\n")
}

/// One line about a turn, with its line end: tokens, cost and duration.
pub fn turn_footer(style: &Style, figures: &TurnFigures) -> String {
    let _ = style;
    format!("{} in, {} out\n", figures.tokens_input, figures.tokens_output)
}
