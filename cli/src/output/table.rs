//! Tables for people: a head, columns as wide as their widest cell, two blanks between.

/// Rows under a head.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<S: AsRef<str>>(head: &[S]) -> Self {
        Self { rows: vec![head.iter().map(|cell| cell.as_ref().to_owned()).collect()] }
    }

    /// Without a head.
    pub(crate) fn bare() -> Self {
        Self { rows: Vec::new() }
    }

    /// Adds a row; an empty cell is printed as `-`.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| if cell.is_empty() { "-".to_owned() } else { cell }).collect());
    }

    /// The table as text; the last column is not padded.
    pub(crate) fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
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
}
