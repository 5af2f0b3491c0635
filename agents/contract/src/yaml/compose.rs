//! Builds a tree with shared aliases from parser events.
//!
//! An alias is a second reference to the same node, so that an alias bomb costs nothing until it is expanded
//! ([`super::expand`]), where values and bytes are counted again.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StructureStyle, Tag};
use serde_json::Value;

use super::core;
use super::scalar::{self, Scalar, Type};
use super::shift::Shifted;
use super::{Budget, Dialect, Position, YamlError, tab};

/// A value and its start position.
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) place: Position,
}

/// The kinds of values.
pub(super) enum Kind {
    Scalar(Scalar),
    Sequence(Vec<Rc<Node>>),
    Mapping(Vec<Pair>),
    /// `!!set`, without its members, because JSON cannot represent a set.
    Set,
}

/// A key and its value.
pub(super) type Pair = (Rc<Node>, Rc<Node>);

/// A collection whose end event has not arrived yet.
struct Open {
    anchor: usize,
    /// Written with brackets or braces.
    flow: bool,
    place: Position,
    tag: CollectionTag,
    children: Vec<Rc<Node>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CollectionTag {
    Sequence,
    Mapping,
    Set,
    /// `!!omap` and `!!pairs`: lists of mappings with one member, each of which becomes a list of key and value.
    Pairs,
}

const CORE: &str = "tag:yaml.org,2002:";

/// Parses the single document of `text`; an empty text is null.
pub(super) fn compose(text: &str, budget: Budget, dialect: Dialect) -> Result<Rc<Node>, YamlError> {
    let mut text = Shifted::new(text);
    loop {
        match Composer::new(&text, budget, dialect).read() {
            Ok(root) => return Ok(root),
            Err(Stop::Error(error)) => return Err(error),
            Err(Stop::TooFarLeft(at, error)) => {
                if !text.shift(&at) {
                    return Err(error);
                }
            }
        }
    }
}

/// Why the parser stopped before the end of the text.
enum Stop {
    Error(YamlError),
    /// A line has too little indentation, which only PyYAML accepts.
    TooFarLeft(Marker, YamlError),
}

impl From<YamlError> for Stop {
    fn from(error: YamlError) -> Self {
        Self::Error(error)
    }
}

struct Composer<'t> {
    text: &'t Shifted<'t>,
    budget: Budget,
    dialect: Dialect,
    nodes: usize,
    open: Vec<Open>,
    anchors: HashMap<usize, Rc<Node>>,
    root: Option<Rc<Node>>,
    /// The byte ranges of quoted and block texts.
    texts: Vec<Range<usize>>,
}

impl<'t> Composer<'t> {
    fn new(text: &'t Shifted<'t>, budget: Budget, dialect: Dialect) -> Self {
        let (open, texts) = (Vec::new(), Vec::new());
        Self { text, budget, dialect, nodes: 0, open, anchors: HashMap::new(), root: None, texts }
    }

    fn read(mut self) -> Result<Rc<Node>, Stop> {
        for next in Parser::new_from_str(self.text.text()) {
            let (event, span) = next.map_err(|error| self.stop(&error))?;
            self.event(event, span)?;
        }
        if let Some(at) = tab::stray(self.text.text(), &self.texts) {
            let problem = "a tab where only a space is allowed".to_owned();
            return Err(YamlError::Syntax { place: self.text.place_of_byte(at), problem }.into());
        }
        Ok(self.root.unwrap_or_else(|| {
            let place = Position { line: 1, column: 1 };
            Rc::new(Node { kind: Kind::Scalar(Scalar::Json(Value::Null)), place })
        }))
    }

    fn stop(&self, error: &ScanError) -> Stop {
        let at = *error.marker();
        let syntax = YamlError::Syntax { place: self.text.place(&at), problem: error.info().to_owned() };
        let in_flow = self.open.last().is_some_and(|open| open.flow);
        match error.info() {
            "invalid indentation in multiline quoted scalar" | "invalid indentation in flow construct" => {
                Stop::TooFarLeft(at, syntax)
            }
            "invalid indentation" if in_flow => Stop::TooFarLeft(at, syntax),
            _ => Stop::Error(syntax),
        }
    }

    /// The text of a block scalar. If the file ends without a line break inside the block, the text has no final line
    /// break either.
    fn block<'s>(&self, text: &'s str, style: ScalarStyle, span: &Span) -> &'s str {
        let source = self.text.text();
        let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        let ends = is_block && !source.ends_with(['\n', '\r']) && span.end.byte_offset() == Some(source.len());
        if ends { text.strip_suffix('\n').unwrap_or(text) } else { text }
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlError> {
        let place = self.text.place(&span.start);
        match event {
            Event::DocumentStart(..) if self.root.is_some() => {
                Err(meaning(place, "a second document; only one is read"))
            }
            Event::Scalar(text, style, anchor, tag) => {
                let bytes = span.start.byte_offset().zip(span.end.byte_offset());
                self.texts.extend(bytes.filter(|_| style != ScalarStyle::Plain).map(|(start, end)| start..end));
                let text = self.block(&text, style, &span);
                let value = scalar(text, style, tag.as_deref(), self.dialect);
                let kind = Kind::Scalar(value.map_err(|problem| meaning(place, problem))?);
                self.add(Node { kind, place }, anchor)
            }
            Event::SequenceStart(style, anchor, tag) => {
                let kind = collection(tag.as_deref(), CollectionTag::Sequence);
                self.begin(anchor, style, place, kind, tag.as_deref())
            }
            Event::MappingStart(style, anchor, tag) => {
                let kind = collection(tag.as_deref(), CollectionTag::Mapping);
                self.begin(anchor, style, place, kind, tag.as_deref())
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).cloned();
                let node = node.ok_or_else(|| meaning(place, "an alias inside its own value"))?;
                self.count(1)?;
                self.place(node);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn begin(
        &mut self,
        anchor: usize,
        style: StructureStyle,
        place: Position,
        kind: Option<CollectionTag>,
        tag: Option<&Tag>,
    ) -> Result<(), YamlError> {
        let Some(kind) = kind else {
            let name = tag.map(Tag::original).unwrap_or_default();
            return Err(meaning(place, format!("unsupported tag {name}")));
        };
        if self.open.len() >= self.budget.depth_max {
            return Err(YamlError::Budget { what: "levels", max: self.budget.depth_max });
        }
        let flow = style == StructureStyle::Flow;
        self.open.push(Open { anchor, flow, place, tag: kind, children: Vec::new() });
        Ok(())
    }

    fn end(&mut self) -> Result<(), YamlError> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let kind = match open.tag {
            CollectionTag::Sequence => Kind::Sequence(open.children),
            CollectionTag::Set => Kind::Set,
            CollectionTag::Pairs => Kind::Sequence(open.children.iter().map(pair).collect::<Result<_, _>>()?),
            CollectionTag::Mapping => {
                let mut pairs = Vec::with_capacity(open.children.len() / 2);
                let mut children = open.children.into_iter();
                while let (Some(key), Some(value)) = (children.next(), children.next()) {
                    pairs.push((key, value));
                }
                Kind::Mapping(self.merged(pairs)?)
            }
        };
        self.add(Node { kind, place: open.place }, open.anchor)
    }

    /// Inserts the mappings of `<<` before the mapping's own pairs, because the last duplicate wins. Among several
    /// merged mappings, the first one wins.
    fn merged(&mut self, pairs: Vec<Pair>) -> Result<Vec<Pair>, YamlError> {
        let is_merge = |key: &Node| matches!(key.kind, Kind::Scalar(Scalar::Merge));
        if !pairs.iter().any(|(key, _)| is_merge(key)) {
            return Ok(pairs);
        }
        let mut all = Vec::new();
        let mut own = Vec::new();
        for (key, value) in pairs {
            if !is_merge(&key) {
                own.push((key, value));
                continue;
            }
            let wrong = || meaning(value.place, "a merge needs a mapping or a list of mappings");
            let mut take = |source: &Node| match &source.kind {
                Kind::Mapping(pairs) => {
                    all.extend(pairs.iter().cloned());
                    self.count(pairs.len())
                }
                _ => Err(wrong()),
            };
            match &value.kind {
                Kind::Sequence(sources) => sources.iter().rev().try_for_each(|source| take(source))?,
                _ => take(&value)?,
            }
        }
        all.append(&mut own);
        Ok(all)
    }

    fn add(&mut self, node: Node, anchor: usize) -> Result<(), YamlError> {
        self.count(1)?;
        let node = Rc::new(node);
        if anchor != 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        self.place(node);
        Ok(())
    }

    fn place(&mut self, node: Rc<Node>) {
        match self.open.last_mut() {
            Some(open) => open.children.push(node),
            None => self.root = Some(node),
        }
    }

    fn count(&mut self, nodes: usize) -> Result<(), YamlError> {
        self.nodes += nodes;
        if self.nodes > self.budget.nodes_max {
            return Err(YamlError::Budget { what: "values", max: self.budget.nodes_max });
        }
        Ok(())
    }
}

/// An error about a value that JSON cannot represent.
pub(super) fn meaning(place: Position, problem: impl Into<String>) -> YamlError {
    YamlError::Meaning { place, problem: problem.into() }
}

/// Converts a mapping with one member to a list of key and value.
fn pair(node: &Rc<Node>) -> Result<Rc<Node>, YamlError> {
    match &node.kind {
        Kind::Mapping(pairs) if pairs.len() == 1 => {
            let items = pairs.iter().flat_map(|(key, value)| [Rc::clone(key), Rc::clone(value)]).collect();
            Ok(Rc::new(Node { kind: Kind::Sequence(items), place: node.place }))
        }
        _ => Err(meaning(node.place, "a list of pairs needs mappings with one member")),
    }
}

/// The core type of a tag: `!!int` is `int`.
fn core_type(tag: &Tag) -> Option<String> {
    format!("{}{}", tag.handle, tag.suffix).strip_prefix(CORE).map(str::to_owned)
}

/// The tag `!`, which names no type.
fn is_non_specific(tag: &Tag) -> bool {
    tag.handle.is_empty() && tag.suffix == "!" || tag.handle == "!" && tag.suffix.is_empty()
}

fn collection(tag: Option<&Tag>, untagged: CollectionTag) -> Option<CollectionTag> {
    let Some(tag) = tag.filter(|tag| !is_non_specific(tag)) else { return Some(untagged) };
    match (core_type(tag)?.as_str(), untagged) {
        ("map", CollectionTag::Mapping) => Some(CollectionTag::Mapping),
        ("set", CollectionTag::Mapping) => Some(CollectionTag::Set),
        ("seq", CollectionTag::Sequence) => Some(CollectionTag::Sequence),
        ("omap" | "pairs", CollectionTag::Sequence) => Some(CollectionTag::Pairs),
        _ => None,
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>, dialect: Dialect) -> Result<Scalar, String> {
    let Some(tag) = tag else {
        return match (style, dialect) {
            (ScalarStyle::Plain, Dialect::Python) => scalar::plain(text),
            (ScalarStyle::Plain, Dialect::Core) => Ok(core::plain(text)),
            (ScalarStyle::Plain, Dialect::Words) => Ok(scalar::word(text)),
            _ => scalar::typed(Type::Str, text),
        };
    };
    if is_non_specific(tag) {
        // PyYAML resolves a plain scalar after `!` like any other.
        return scalar(text, style, None, dialect);
    }
    let kind = match core_type(tag).as_deref() {
        Some("null") => Type::Null,
        Some("bool") => Type::Bool,
        Some("int") => Type::Int,
        Some("float") => Type::Float,
        Some("timestamp") => Type::Timestamp,
        Some("str") => Type::Str,
        Some("binary") => Type::Binary,
        _ => return Err(format!("unsupported tag {}", tag.original())),
    };
    scalar::typed(kind, text)
}
