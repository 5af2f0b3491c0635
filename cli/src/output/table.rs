//! Tables for users: a heading, and columns as wide as their widest cell, separated by two spaces.

use super::screen::{Paint, Screen};
use crate::words;

/// The headings of columns with text for people, which is cut where the screen is too narrow.
const TEXTS: [&str; 16] = [
    "ANSWER",
    "CAPABILITIES",
    "CHAPTER",
    "CLAIMS",
    "DESCRIPTION",
    "ERROR",
    "FALLBACKS",
    "INPUT",
    "LABELS",
    "OUTPUT",
    "PROMPT",
    "REASON",
    "RESULT",
    "SAYS",
    "WHY",
    "WRONG",
];
/// The least that is left of such a column.
const TEXT_MIN: usize = 12;
/// The headings of columns whose cells are states.
const STATES: [&str; 5] = ["HEALTH", "OUTCOME", "ROLE", "STATE", "STATUS"];

/// A heading and rows.
#[derive(Debug)]
pub(crate) struct Table {
    /// The headings, also if they are not printed.
    heads: Option<Vec<String>>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<S: AsRef<str>>(head: &[S]) -> Self {
        let heads: Vec<String> = head.iter().map(|cell| cell.as_ref().to_owned()).collect();
        Self { heads: Some(heads.clone()), rows: vec![heads] }
    }

    /// A table with these headings, which are printed or only known.
    pub(crate) fn of<S: AsRef<str>>(head: &[S], prints: bool) -> Self {
        let mut table = Self::new(head);
        if !prints {
            table.rows.clear();
        }
        table
    }

    /// A table without a heading.
    pub(crate) fn bare() -> Self {
        Self { heads: None, rows: Vec::new() }
    }

    /// How many columns its first row has.
    pub(crate) fn width(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }

    /// Adds a row; an empty cell is printed as `-`.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| if cell.is_empty() { "-".to_owned() } else { cell }).collect());
    }

    /// The table as text; the last column is not padded.
    pub(crate) fn text(&self) -> String {
        self.text_under(&mut Vec::new())
    }

    /// The table as text below printed rows with these widths; wider cells increase the widths.
    pub(crate) fn text_under(&self, widths: &mut Vec<usize>) -> String {
        self.text_on(Screen::get(), widths)
    }

    fn text_on(&self, screen: Screen, widths: &mut Vec<usize>) -> String {
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let shown = match screen.width {
            Some(most) => self.fitted(widths, most),
            None => widths.clone(),
        };
        let line = |(number, row): (usize, &Vec<String>)| {
            let is_head = number == 0 && self.heads.as_ref() == Some(row);
            let last = row.len().saturating_sub(1);
            let cell = |(column, (cell, &width)): (usize, (&String, &usize))| {
                let text = words::cut(cell, width);
                let room = if column == last { 0 } else { width.saturating_sub(text.chars().count()) };
                let text = if screen.colour && !is_head { self.painted(column, text) } else { text };
                text + &" ".repeat(room)
            };
            let cells: Vec<String> = row.iter().zip(&shown).enumerate().map(cell).collect();
            cells.join("  ").trim_end().to_owned() + "\n"
        };
        self.rows.iter().enumerate().map(line).collect()
    }

    /// The widths for a screen: columns of text are cut, the widest first, and never those with names and ids.
    fn fitted(&self, widths: &[usize], most: usize) -> Vec<usize> {
        let mut fitted = widths.to_vec();
        let gaps = 2 * widths.len().saturating_sub(1);
        loop {
            let over = (fitted.iter().sum::<usize>() + gaps).saturating_sub(most);
            let texts = (0..fitted.len()).filter(|&column| self.is_text(column) && fitted[column] > TEXT_MIN);
            let Some(widest) = texts.max_by_key(|&column| fitted[column]).filter(|_| over > 0) else { return fitted };
            fitted[widest] = fitted[widest].saturating_sub(over).max(TEXT_MIN);
        }
    }

    fn is_text(&self, column: usize) -> bool {
        self.head(column).is_some_and(|head| TEXTS.contains(&head))
    }

    fn painted(&self, column: usize, cell: String) -> String {
        let is_state = self.head(column).is_some_and(|head| STATES.contains(&head));
        match Paint::of_state(&cell).filter(|_| is_state) {
            Some(paint) => paint.mark(&cell),
            None => cell,
        }
    }

    fn head(&self, column: usize) -> Option<&str> {
        self.heads.as_ref()?.get(column).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["NAME", "N"]);
        table.row(["größe".to_owned(), "1".to_owned()]);
        table.row(["x".to_owned(), String::new()]);
        expect![[r#"
            NAME   N
            größe  1
            x      -
        "#]]
        .assert_eq(&table.text());
    }

    #[test]
    fn text_is_cut_to_the_screen_and_ids_are_not() {
        let mut table = Table::new(&["JOB", "STATUS", "ERROR", "REASON"]);
        let row = ["job-4f3a09c1d27be685", "failed", "the model did not answer in time", "a reason of some length"];
        table.row(row.map(str::to_owned));
        let on = |width: Option<usize>, colour: bool| table.text_on(Screen { colour, width }, &mut Vec::new());
        expect![[r#"
            JOB                   STATUS  ERROR                      REASON
            job-4f3a09c1d27be685  failed  the model did not answer…  a reason of some length
        "#]]
        .assert_eq(&on(Some(80), false));
        expect![[r#"
            JOB                   STATUS  ERROR         REASON
            job-4f3a09c1d27be685  failed  the model d…  a reason of…
        "#]]
        .assert_eq(&on(Some(20), false));
        assert!(on(None, false).ends_with("the model did not answer in time  a reason of some length\n"));
        let coloured = super::super::screen::painted(&on(None, true));
        assert!(coloured.contains("job-4f3a09c1d27be685  \u{1b}[31mfailed\u{1b}[0m  the model"), "{coloured}");
    }

    #[test]
    fn rows_that_come_later_stand_under_the_first_ones() {
        let mut widths = Vec::new();
        let text = |cells: [&str; 2], widths: &mut Vec<usize>| {
            let mut table = Table::bare();
            table.row(cells.map(str::to_owned));
            table.text_under(widths)
        };
        let all = [["name", "n"], ["x", "1"], ["longer", "2"], ["x", "3"]].map(|cells| text(cells, &mut widths));
        expect![[r#"
            name  n
            x     1
            longer  2
            x       3
        "#]]
        .assert_eq(&all.concat());
    }
}
