//! The code of an answer.

use crate::block::fences;

/// A fenced block of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeBlock {
    /// The first word after the opening fence, such as `rust`; empty if there is none.
    pub language: String,
    /// The lines of the block, each with its line end, as the model wrote them.
    pub text: String,
}

/// The fenced blocks of an answer, in order, also those in quotes and lists. A block whose fence is not closed ends with the text.
///
/// ```
/// # use atlas_terminal::code_blocks;
/// let blocks = code_blocks("So:\n\n1. first\n   ```sh\n   ls -l\n   ```\n");
/// assert_eq!((blocks[0].language.as_str(), blocks[0].text.as_str()), ("sh", "ls -l\n"));
/// ```
pub fn code_blocks(text: &str) -> Vec<CodeBlock> {
    fences(text).into_iter().map(|(language, text)| CodeBlock { language, text }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let blocks = code_blocks(text);
        let found: Vec<_> = blocks.iter().map(|block| (block.language.as_str(), block.text.as_str())).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn blocks_are_what_the_model_wrote() {
        check(
            "a\n```rust,ignore\nfn a() {}\n\n  b\n```\nc\n~~~\n```\n~~~~\n",
            &[("rust", "fn a() {}\n\n  b\n"), ("", "```\n")],
        );
        check("```sh\r\nls\r\n```\r\n", &[("sh", "ls\r\n")]);
        check("```\nnot closed", &[("", "not closed")]);
        check(
            "> ```py\n> x\n> ```\n\n- a\n  - b\n\n    ```\n    y\n      z\n    ```\n",
            &[("py", "x\n"), ("", "y\n  z\n")],
        );
        check("`not` ```a fence``` here\n```a`b\n", &[]);
        check("text\n\n    ```\n    indented, and so no fence\n", &[]);
        check("", &[]);
    }
}
