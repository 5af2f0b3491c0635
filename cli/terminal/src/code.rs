//! The code of an answer.

/// A fenced block of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeBlock {
    /// The first word after the opening fence, such as `rust`; empty if there is none.
    pub language: String,
    /// The lines of the block, each with its line end, as the model wrote them.
    pub text: String,
}

/// The fenced blocks of an answer, in order. A block whose fence is not closed ends with the text.
pub fn code_blocks(text: &str) -> Vec<CodeBlock> {
    let _ = text;
    Vec::new()
}
