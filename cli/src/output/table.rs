//! Tables for users: a heading, and columns as wide as their widest cell, separated by two spaces.

/// A heading and rows.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<S: AsRef<str>>(head: &[S]) -> Self {
        Self { rows: vec![head.iter().map(|cell| cell.as_ref().to_owned()).collect()] }
    }

    /// A table without a heading.
    pub(crate) fn bare() -> Self {
        Self { rows: Vec::new() }
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
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&*widths).map(|(cell, &width)| format!("{cell:width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
        };
        self.rows.iter().map(line).collect()
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
