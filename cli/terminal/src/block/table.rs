//! Tables: kept until they end, because the widths of columns are those of all cells.
//!
//! A table of many rows is printed when [`ROWS_MAX`] of them are there; the others follow in the columns of the first. A table that does not
//! fit into the width is printed as it is written.

use crate::Style;
use crate::inline::Inline;
use crate::look::Look;
use crate::style::ColorDepth;
use crate::writer::{Sink, Writer};

/// Rows that are kept before the first is printed.
const ROWS_MAX: usize = 200;
const BYTES_MAX: usize = 64 << 10;
const COLUMNS_MAX: usize = 64;
/// A column in which words are wrapped has at least this width.
const WRAPPED_WIDTH_MIN: usize = 8;
/// Cells that are wider count as so wide.
const CELL_WIDTH_MAX: usize = 1_000;

/// A table that is open.
#[derive(Debug)]
pub(super) struct Table {
    style: Style,
    room: usize,
    sides: Vec<Side>,
    /// The header and the rows that are not printed yet.
    kept: Vec<String>,
    kept_bytes: usize,
    /// The line below the header.
    delimiter: String,
    layout: Option<Layout>,
}

/// How a table is printed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Layout {
    Columns(Vec<usize>),
    /// As it is written.
    Source,
}

/// The side of a column to which its text is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Middle,
    Right,
}

impl Table {
    /// A table, if the second line is the line below a header.
    pub(super) fn begin(header: &str, delimiter: &str, style: &Style, room: usize) -> Option<Self> {
        let columns = cells(header).len();
        let is_line =
            delimiter.contains('-') && delimiter.chars().all(|letter| matches!(letter, '|' | ':' | '-' | ' ' | '\t'));
        if !is_line || columns > COLUMNS_MAX {
            return None;
        }
        let mut sides: Vec<Side> = cells(delimiter).iter().map(|cell| side(cell)).collect();
        sides.resize(columns, Side::Left);
        Some(Self {
            style: *style,
            room,
            sides,
            kept: vec![header.to_owned()],
            kept_bytes: header.len(),
            delimiter: delimiter.to_owned(),
            layout: None,
        })
    }

    /// Takes a row.
    pub(super) fn add(&mut self, row: &str, writer: &mut Writer) {
        if self.layout.is_some() {
            self.write(row, false, writer);
            return;
        }
        self.kept_bytes += row.len();
        self.kept.push(row.to_owned());
        if self.kept.len() > ROWS_MAX || self.kept_bytes > BYTES_MAX {
            self.end(writer);
        }
    }

    /// Prints what is kept.
    pub(super) fn end(&mut self, writer: &mut Writer) {
        let kept = std::mem::take(&mut self.kept);
        if self.layout.is_none() {
            self.layout = Some(self.lay_out(&kept));
        }
        for (index, row) in kept.iter().enumerate() {
            self.write(row, index == 0, writer);
        }
    }

    fn lay_out(&self, rows: &[String]) -> Layout {
        let mut widths = vec![1; self.sides.len()];
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(self.row_cells(row)) {
                let lines = self.cell(&cell, CELL_WIDTH_MAX, Look::default());
                *width = lines.iter().map(|(_, width)| *width).chain([*width]).max().unwrap_or(1);
            }
        }
        let edges = if self.is_plain() { 3 * widths.len() + 1 } else { 3 * widths.len().saturating_sub(1) };
        match fit(widths, self.room.saturating_sub(edges)) {
            Some(widths) => Layout::Columns(widths),
            None => Layout::Source,
        }
    }

    fn is_plain(&self) -> bool {
        self.style.colors == ColorDepth::None
    }

    /// The cells of a row, as many as the header has.
    fn row_cells(&self, row: &str) -> Vec<String> {
        let mut cells = cells(row);
        if cells.len() > self.sides.len() {
            let last = self.sides.len().saturating_sub(1);
            let rest = cells.split_off(last).join(" | ");
            cells.push(rest);
        }
        cells.resize(self.sides.len(), String::new());
        cells
    }

    /// The lines of a cell and their widths.
    fn cell(&self, text: &str, width: usize, base: Look) -> Vec<(String, usize)> {
        let mut writer = Writer::new(self.style, width);
        let mut inline = Inline::new(self.is_plain());
        inline.begin(base);
        let text = text.replace("<br>", "\n").replace("<br/>", "\n").replace("<br />", "\n");
        text.chars().for_each(|letter| inline.push(letter, &mut writer));
        inline.end(&mut writer);
        writer.into_lines()
    }

    fn write(&mut self, row: &str, is_header: bool, writer: &mut Writer) {
        match &self.layout {
            Some(Layout::Columns(widths)) => {
                self.write_cells(row, widths, is_header, writer);
                if is_header {
                    writer.painted_line(&self.line_below(widths, writer));
                }
            }
            _ => {
                self.write_source(row, writer);
                if is_header {
                    self.write_source(&self.delimiter, writer);
                }
            }
        }
    }

    fn write_cells(&self, row: &str, widths: &[usize], is_header: bool, writer: &mut Writer) {
        let base = Look { bold: is_header, ..Look::default() };
        let cells: Vec<_> =
            self.row_cells(row).iter().zip(widths).map(|(cell, width)| self.cell(cell, *width, base)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or_default().max(1);
        let bar = self.dim(writer, if self.is_plain() { "|" } else { "│" });
        for index in 0..height {
            let mut line = String::new();
            for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                if column > 0 {
                    line.push_str(&format!(" {bar} "));
                } else if self.is_plain() {
                    line.push_str("| ");
                }
                let (text, used) = cell.get(index).map_or(("", 0), |(text, used)| (text.as_str(), *used));
                let free = width.saturating_sub(used);
                let before = match self.sides.get(column) {
                    Some(Side::Right) => free,
                    Some(Side::Middle) => free / 2,
                    _ => 0,
                };
                line.push_str(&" ".repeat(before));
                line.push_str(text);
                line.push_str(&" ".repeat(free - before));
            }
            if self.is_plain() {
                line.push_str(" |");
            }
            writer.painted_line(&line);
        }
    }

    fn line_below(&self, widths: &[usize], writer: &Writer) -> String {
        if self.is_plain() {
            let cells: Vec<_> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
            return format!("|{}|", cells.join("|"));
        }
        let cells: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
        self.dim(writer, &cells.join("─┼─"))
    }

    fn dim(&self, writer: &Writer, text: &str) -> String {
        writer.painted(text, Look::DIM)
    }

    fn write_source(&self, row: &str, writer: &mut Writer) {
        let mut inline = Inline::new(self.is_plain());
        inline.begin(Look::default());
        row.chars().for_each(|letter| inline.push(letter, writer));
        inline.end(writer);
        writer.line_break();
    }
}

/// Widths that together are not more than `room`: the wide columns get less, the others stay. None if words had no space.
fn fit(widths: Vec<usize>, room: usize) -> Option<Vec<usize>> {
    let used = |cap: usize| widths.iter().map(|width| *width.min(&cap)).sum::<usize>();
    if used(usize::MAX) <= room {
        return Some(widths);
    }
    let cap = (WRAPPED_WIDTH_MIN..=room).take_while(|cap| used(*cap) <= room).last()?;
    let mut free = room - used(cap);
    let widen = |width: &usize| {
        let more = usize::from(*width > cap && free > 0);
        free -= more;
        *width.min(&cap) + more
    };
    Some(widths.iter().map(widen).collect())
}

fn side(cell: &str) -> Side {
    match (cell.starts_with(':'), cell.ends_with(':')) {
        (true, true) => Side::Middle,
        (false, true) => Side::Right,
        _ => Side::Left,
    }
}

/// The texts between the bars of a row. `\|` is a bar within a text.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let mut cells = vec![String::new()];
    let mut is_escaped = false;
    for letter in row.chars() {
        match (letter, cells.last_mut()) {
            ('|', Some(cell)) if is_escaped => {
                cell.pop();
                cell.push('|');
            }
            ('|', _) => cells.push(String::new()),
            (_, Some(cell)) => cell.push(letter),
            (_, None) => {}
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    // The bar at the end of a row begins no cell.
    if cells.len() > 1 && cells.last().is_some_and(|cell| cell.trim().is_empty()) {
        cells.pop();
    }
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_between_bars() {
        assert_eq!(cells("| a | b\\|c |  |"), ["a", "b|c", ""]);
        assert_eq!(cells("|a|b"), ["a", "b"]);
        assert_eq!(cells("|"), [""]);
        assert_eq!(cells("| a \\\\| b |"), ["a \\\\", "b"]);
    }

    #[test]
    fn wide_columns_get_less() {
        assert_eq!(fit(vec![3, 4], 10), Some(vec![3, 4]));
        assert_eq!(fit(vec![3, 40, 30], 30), Some(vec![3, 14, 13]));
        assert_eq!(fit(vec![30, 30, 30], 20), None, "8 columns a word are too few for three");
    }
}
