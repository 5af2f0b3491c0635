//! Syntax trees of Python and TypeScript.

use std::ops::ControlFlow;

use tree_sitter::{Language, Node, ParseOptions, ParseState, Parser, Tree};

use crate::error::{DeclarationError, Fault, Place};
use crate::limits;

/// A parsed source.
pub(crate) struct Parsed<'s> {
    source: &'s str,
    tree: Tree,
}

impl<'s> Parsed<'s> {
    /// Parses a source. One with an error anywhere is refused.
    pub(crate) fn new(language: &Language, source: &'s str) -> Result<Self, DeclarationError> {
        let unread = |detail| DeclarationError::new(Fault::Limit, None, detail);
        let mut parser = Parser::new();
        parser.set_language(language).map_err(|_| unread("the parser does not know the language"))?;
        let (bytes, mut reads, mut pauses) = (source.as_bytes(), 0, 0);
        let mut read = |offset: usize, _| {
            reads += 1;
            // After too many reads the source ends here, which ends the parser.
            let rest = bytes.get(offset..).filter(|_| reads <= limits::PARSER_READS_MAX).unwrap_or_default();
            rest.get(..limits::PARSER_READ_BYTES).unwrap_or(rest)
        };
        let mut progress = |_: &ParseState| {
            pauses += 1;
            if pauses > limits::PARSER_PAUSES_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut progress);
        let tree = parser.parse_with_options(&mut read, None, Some(options));
        let tree = tree.filter(|_| reads <= limits::PARSER_READS_MAX);
        let parsed = Self { source, tree: tree.ok_or_else(|| unread("the file takes too long to parse"))? };
        match parsed.first_error() {
            None => Ok(parsed),
            Some(node) => Err(parsed.refused(Fault::Syntax, node, parsed.complaint(node))),
        }
    }

    pub(crate) fn root(&self) -> Node<'_> {
        self.tree.root_node()
    }

    /// The text of a node.
    pub(crate) fn text(&self, node: Node<'_>) -> &'s str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    /// The line and the column where a node starts.
    pub(crate) fn place(&self, node: Node<'_>) -> Place {
        let start = node.start_position();
        let line = self.source.get(..node.start_byte()).unwrap_or_default();
        let line = line.rsplit('\n').next().unwrap_or_default();
        Place { line: start.row + 1, column: line.chars().count() + 1 }
    }

    /// An error at a node.
    pub(crate) fn refused(&self, fault: Fault, node: Node<'_>, detail: impl Into<String>) -> DeclarationError {
        DeclarationError::new(fault, Some(self.place(node)), detail)
    }

    /// The first node that does not fit the grammar. No recursion: the tree can be as deep as the file is long.
    fn first_error(&self) -> Option<Node<'_>> {
        let mut node = self.root();
        if !node.has_error() {
            return None;
        }
        loop {
            if node.is_error() || node.is_missing() {
                return Some(node);
            }
            let mut cursor = node.walk();
            let next = node.children(&mut cursor).find(|child| child.has_error() || child.is_missing());
            match next {
                Some(child) => node = child,
                None => return Some(node),
            }
        }
    }

    fn complaint(&self, node: Node<'_>) -> String {
        if node.is_missing() {
            return format!("syntax error: \"{}\" is missing", node.kind());
        }
        let text = self.text(node);
        let line = text.lines().next().unwrap_or_default();
        let shown: String = line.chars().take(40).collect();
        let more = if shown.len() < text.len() { "…" } else { "" };
        format!("syntax error at \"{shown}{more}\"")
    }
}

/// The named children of a node, without comments.
pub(crate) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).filter(|child| child.kind() != "comment").collect()
}
