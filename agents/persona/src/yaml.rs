//! The YAML of these files: mappings, lists and texts, with their places. Anchors, tags and several documents are refused.

use granit_parser::{Event, Parser, ScalarStyle, Span};

const BYTES_MAX: usize = 256 << 10;
const DEPTH_MAX: usize = 8;
const NODES_MAX: usize = 10_000;

/// A place in a file; both numbers start at 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilePlace {
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

/// Why a file was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {}, column {}: {problem}", place.line, place.column)]
pub struct FileError {
    /// Where the problem is.
    pub place: FilePlace,
    /// What the problem is, and what to write.
    pub problem: String,
}

impl FileError {
    pub(crate) fn new(place: FilePlace, problem: impl Into<String>) -> Self {
        Self { place, problem: problem.into() }
    }
}

/// A value and where it begins.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) place: FilePlace,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Text { text: String, is_plain: bool },
    List(Vec<Node>),
    Mapping(Vec<(Node, Node)>),
}

impl Node {
    /// Whether the value is left out, `null` or `~`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Text { text, is_plain: true } if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The text, as it is written also where YAML sees a number.
    pub(crate) fn text(&self, what: &str) -> Result<&str, FileError> {
        match &self.kind {
            Kind::Text { text, .. } if !self.is_null() => Ok(text),
            _ => Err(FileError::new(self.place, format!("{what} is a text"))),
        }
    }

    pub(crate) fn boolean(&self, what: &str) -> Result<bool, FileError> {
        match &self.kind {
            Kind::Text { text, is_plain: true } if text == "true" => Ok(true),
            Kind::Text { text, is_plain: true } if text == "false" => Ok(false),
            _ => Err(FileError::new(self.place, format!("{what} is true or false"))),
        }
    }

    pub(crate) fn list(&self, what: &str) -> Result<&[Self], FileError> {
        match &self.kind {
            Kind::List(values) => Ok(values),
            _ => Err(FileError::new(self.place, format!("{what} is a list"))),
        }
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self.kind, Kind::List(_))
    }

    /// The members of a mapping: no name is there twice.
    pub(crate) fn members(&self, what: &str) -> Result<Vec<(&str, &Self, FilePlace)>, FileError> {
        let Kind::Mapping(pairs) = &self.kind else {
            return Err(FileError::new(
                self.place,
                format!("{what} is a mapping, with a \"name: value\" on each line"),
            ));
        };
        let mut members: Vec<(&str, &Self, FilePlace)> = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            let name = key.text("a name")?;
            if members.iter().any(|(known, ..)| *known == name) {
                return Err(FileError::new(key.place, format!("\"{name}\" is there twice: remove one")));
            }
            members.push((name, value, key.place));
        }
        Ok(members)
    }
}

/// Reads a document. `line_before` lines of the file are above it.
pub(crate) fn read(text: &str, lines_before: usize) -> Result<Node, FileError> {
    let start = FilePlace { line: lines_before + 1, column: 1 };
    if text.len() > BYTES_MAX {
        return Err(FileError::new(start, format!("there are at most {} KiB of YAML", BYTES_MAX >> 10)));
    }
    let mut reading = Reading { lines_before, count: 0, open: Vec::new(), root: None };
    for next in Parser::new_from_str(text) {
        let (event, span) = next.map_err(|error| {
            let marker = error.marker();
            let place = FilePlace { line: marker.line() + lines_before, column: marker.col() + 1 };
            FileError::new(place, format!("this is not YAML: {}", error.info()))
        })?;
        reading.event(event, &span)?;
    }
    let null = Kind::Text { text: String::new(), is_plain: true };
    Ok(reading.root.unwrap_or(Node { place: start, kind: null }))
}

struct Reading {
    lines_before: usize,
    count: usize,
    open: Vec<(FilePlace, bool, Vec<Node>)>,
    root: Option<Node>,
}

impl Reading {
    fn event(&mut self, event: Event<'_>, span: &Span) -> Result<(), FileError> {
        let place = FilePlace { line: span.start.line() + self.lines_before, column: span.start.col() + 1 };
        let refused = |problem: &str| Err(FileError::new(place, problem));
        match event {
            Event::DocumentStart(..) if self.root.is_some() => refused("there is a second document: remove it"),
            Event::Scalar(_, _, 1.., _) | Event::SequenceStart(_, 1.., _) | Event::MappingStart(_, 1.., _) => {
                refused("anchors are not supported: write the value where it is used")
            }
            Event::Alias(_) => refused("aliases are not supported: write the value"),
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, _, Some(_))
            | Event::MappingStart(_, _, Some(_)) => refused("tags are not supported: remove the tag"),
            Event::Scalar(text, style, _, None) => {
                let kind = Kind::Text { text: text.into_owned(), is_plain: style == ScalarStyle::Plain };
                self.add(Node { place, kind })
            }
            Event::SequenceStart(..) => self.begin(place, false),
            Event::MappingStart(..) => self.begin(place, true),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, place: FilePlace, is_mapping: bool) -> Result<(), FileError> {
        if self.open.len() >= DEPTH_MAX {
            return Err(FileError::new(place, format!("values are nested at most {DEPTH_MAX} deep")));
        }
        self.open.push((place, is_mapping, Vec::new()));
        Ok(())
    }

    fn end(&mut self) -> Result<(), FileError> {
        let Some((place, is_mapping, children)) = self.open.pop() else { return Ok(()) };
        let kind = if is_mapping {
            let mut pairs = Vec::with_capacity(children.len() / 2);
            let mut children = children.into_iter();
            while let (Some(key), Some(value)) = (children.next(), children.next()) {
                pairs.push((key, value));
            }
            Kind::Mapping(pairs)
        } else {
            Kind::List(children)
        };
        self.add(Node { place, kind })
    }

    fn add(&mut self, node: Node) -> Result<(), FileError> {
        self.count += 1;
        if self.count > NODES_MAX {
            return Err(FileError::new(node.place, format!("there are at most {NODES_MAX} values")));
        }
        match self.open.last_mut() {
            Some((_, _, children)) => children.push(node),
            None => self.root = Some(node),
        }
        Ok(())
    }
}
