//! Lists: filters, sort order and columns.

use atlas_contract::nearest;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Form, Look, Members, Path, Shown, Table, plain, unknown};
use crate::answers;
use crate::failure::Failure;
use crate::filter::Filter;

/// Options of every list.
#[derive(Debug, Clone, Default, clap::Args)]
#[group(skip)]
pub(crate) struct ListOptions {
    /// Only these columns, by heading or by object member such as labels.demo.
    #[arg(long, value_delimiter = ',', value_name = "A,B,…", help_heading = "Lists")]
    columns: Vec<String>,
    /// Sort by this column; a leading minus reverses the order.
    #[arg(long, allow_hyphen_values = true, value_name = "[-]COLUMN", help_heading = "Lists")]
    sort: Option<String>,
    /// Only objects that match this expression, such as 'status == "failed" && attempt > 1'.
    #[arg(long, value_name = "CEL", help_heading = "Lists")]
    filter: Option<Filter>,
    /// Maximum number of objects to list.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "Lists")]
    limit: Option<u32>,
    /// Omit the column headings.
    #[arg(long, help_heading = "Lists")]
    no_headers: bool,
}

impl ListOptions {
    /// Maximum number of objects, if given.
    pub(crate) fn limit(&self) -> Option<u32> {
        self.limit
    }

    /// Whether the list is filtered or sorted; the command must then fetch more objects than it prints.
    pub(crate) fn selects(&self) -> bool {
        self.filter.is_some() || self.sorts()
    }

    /// Whether the list has another order than the server's.
    pub(crate) fn sorts(&self) -> bool {
        self.sort.is_some()
    }

    /// Whether the filter admits an object.
    pub(crate) fn admits(&self, item: &Value) -> Result<bool, Failure> {
        self.filter.as_ref().map_or(Ok(true), |filter| filter.admits(item))
    }

    /// Options for rows that are added below a printed list: the same columns, and no headings.
    #[must_use]
    pub(crate) fn under_a_head(&self) -> Self {
        Self { columns: self.columns.clone(), no_headers: true, ..Self::default() }
    }

    /// The objects that match the filter, up to the limit.
    pub(crate) fn kept(&self, value: Value) -> Result<Vec<Value>, Failure> {
        let Value::Array(all) = value else { return Err(Failure::answer("a list is expected")) };
        let mut items = Vec::new();
        for item in all {
            if self.admits(&item)? {
                items.push(item);
            }
        }
        if let (Some(limit), None) = (self.limit, &self.sort) {
            items.truncate(limit as usize);
        }
        Ok(items)
    }
}

/// A column: its heading, its member of the object, and how a cell is printed for users.
pub(crate) struct Column<T> {
    head: &'static str,
    field: &'static str,
    when: When,
    cell: fn(&T, &Look) -> String,
}

/// When a table has a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    /// With `-o wide`.
    Wide,
    /// If an object has its member.
    Rare,
}

/// A column that is always shown.
pub(crate) const fn column<T>(head: &'static str, field: &'static str, cell: fn(&T, &Look) -> String) -> Column<T> {
    Column { head, field, when: When::Always, cell }
}

/// A column that only `-o wide` shows.
pub(crate) const fn wide<T>(head: &'static str, field: &'static str, cell: fn(&T, &Look) -> String) -> Column<T> {
    Column { head, field, when: When::Wide, cell }
}

/// A column that is shown if an object has its member.
pub(crate) const fn rare<T>(head: &'static str, field: &'static str, cell: fn(&T, &Look) -> String) -> Column<T> {
    Column { head, field, when: When::Rare, cell }
}

/// Describes how a kind of object is listed.
pub(crate) struct List<'a, T> {
    /// All columns.
    pub(crate) columns: &'a [Column<T>],
    /// The members that objects of the kind can have.
    pub(crate) members: Members,
    /// The name of an object, such as `job/job-4f3a09c1d27be685`.
    pub(crate) name: fn(&T) -> String,
}

/// A requested column.
enum Pick<'a, T> {
    Known(&'a Column<T>),
    Member(String, Path),
}

impl<T: DeserializeOwned> List<'_, T> {
    /// The list as text in a format; an empty list gives an empty table.
    pub(crate) fn render(
        &self,
        value: Value,
        options: &ListOptions,
        form: &Form,
        look: &Look,
    ) -> Result<(String, usize), Failure> {
        self.render_under(&mut Vec::new(), value, options, form, look)
    }

    /// Like [`Self::render`], for rows below a printed table with columns of these widths.
    pub(crate) fn render_under(
        &self,
        widths: &mut Vec<usize>,
        value: Value,
        options: &ListOptions,
        form: &Form,
        look: &Look,
    ) -> Result<(String, usize), Failure> {
        self.check(options, value.as_array().map_or(&[], Vec::as_slice))?;
        let mut items = options.kept(value)?;
        if let Some(order) = &options.sort {
            self.sort(&mut items, order)?;
        }
        if let Some(limit) = options.limit {
            items.truncate(limit as usize);
        }
        let count = items.len();
        let text = match form {
            Form::Table | Form::Wide => self.table(&items, options, *form == Form::Wide, look)?.text_under(widths),
            Form::Csv => self.csv(&items, options)?,
            form => {
                let names = if *form == Form::Name { self.names(&items)? } else { Vec::new() };
                form.render(&Shown { value: Value::Array(items), text: String::new(), names })?
            }
        };
        Ok((text, count))
    }

    /// Refuses an option that names an unknown member. A member of `items` is accepted as well, because a newer server
    /// may have added members.
    pub(crate) fn check(&self, options: &ListOptions, items: &[Value]) -> Result<(), Failure> {
        let member = |name: &str| self.members.has(name) || items.iter().any(|item| item.get(name).is_some());
        let names = self.members.names();
        let known = || names.iter().copied();
        let mut filtered = options.filter.iter().flat_map(Filter::names);
        if let Some(name) = filtered.find(|name| !member(name)) {
            // A filter uses names of members; for the heading of a column, suggest the column's member.
            let headed = self.columns.iter().find(|column| column.head.eq_ignore_ascii_case(name));
            let failure = unknown(name, "for the filter", known());
            return Err(match headed {
                Some(column) => failure.with_next(format!("did you mean {}?", column.field)),
                None => failure,
            });
        }
        let heads: Vec<String> = self.columns.iter().map(|column| column.head.to_lowercase()).collect();
        let order = options.sort.iter().map(|order| (order.strip_prefix('-').unwrap_or(order), "to sort by"));
        let columns = options.columns.iter().map(|name| (name.as_str(), "for a column"));
        for (name, what_for) in order.chain(columns) {
            let Pick::Member(_, path) = self.pick(name)? else { continue };
            let Some(root) = path.root().filter(|root| !member(root)) else { continue };
            let failure = unknown(root, what_for, heads.iter().map(String::as_str));
            return Err(match nearest(root, known()) {
                Some(near) => failure.with_next(format!("did you mean {near}?")),
                None => failure,
            });
        }
        Ok(())
    }

    fn names(&self, items: &[Value]) -> Result<Vec<String>, Failure> {
        let names = items.iter().map(|item| answers::read::<T>(item).map(|object| (self.name)(&object)));
        let mut names = names.collect::<Result<Vec<_>, _>>()?;
        // Several rows can have the same name, such as the GPUs of one node.
        names.dedup();
        Ok(names)
    }

    /// The table; empty if there are no objects.
    fn table(&self, items: &[Value], options: &ListOptions, wide: bool, look: &Look) -> Result<Table, Failure> {
        if items.is_empty() {
            return Ok(Table::bare());
        }
        let picks = self.picks(options, |column| match column.when {
            When::Always => true,
            When::Wide => wide,
            When::Rare => items.iter().any(|item| item.get(column.field).is_some()),
        })?;
        let mut table = Table::of(&heads(&picks), !options.no_headers);
        for item in items {
            let object: T = answers::read(item)?;
            table.row(picks.iter().map(|pick| match pick {
                Pick::Known(column) => (column.cell)(&object, look),
                Pick::Member(_, path) => joined(path, item),
            }));
        }
        Ok(table)
    }

    /// The list as CSV, with the unformatted values of the API.
    fn csv(&self, items: &[Value], options: &ListOptions) -> Result<String, Failure> {
        let picks = self.picks(options, |_| true)?;
        let mut paths = Vec::new();
        let mut text = String::new();
        for pick in &picks {
            paths.push(match pick {
                Pick::Known(column) => column.field.parse().map_err(Failure::usage)?,
                Pick::Member(_, path) => path.clone(),
            });
        }
        if !options.no_headers {
            let head = picks.iter().map(|pick| match pick {
                Pick::Known(column) => quoted(column.field),
                Pick::Member(name, _) => quoted(name),
            });
            text += &(head.collect::<Vec<_>>().join(",") + "\r\n");
        }
        for item in items {
            let cells = paths.iter().map(|path: &Path| quoted(&joined(path, item)));
            text += &(cells.collect::<Vec<_>>().join(",") + "\r\n");
        }
        Ok(text)
    }

    fn picks(&self, options: &ListOptions, shown: impl Fn(&Column<T>) -> bool) -> Result<Vec<Pick<'_, T>>, Failure> {
        if options.columns.is_empty() {
            return Ok(self.columns.iter().filter(|column| shown(column)).map(Pick::Known).collect());
        }
        options.columns.iter().map(|name| self.pick(name)).collect()
    }

    /// The column with this heading or member; otherwise the name is taken as a path into the object.
    fn pick(&self, name: &str) -> Result<Pick<'_, T>, Failure> {
        let known = self.columns.iter().find(|column| column.head.eq_ignore_ascii_case(name) || column.field == name);
        match known {
            Some(column) => Ok(Pick::Known(column)),
            None => Ok(Pick::Member(name.to_owned(), name.parse().map_err(Failure::usage)?)),
        }
    }

    fn sort(&self, items: &mut [Value], order: &str) -> Result<(), Failure> {
        let (name, down) = match order.strip_prefix('-') {
            Some(name) => (name, true),
            None => (order, false),
        };
        let path = match self.pick(name)? {
            Pick::Known(column) => column.field.parse().map_err(Failure::usage)?,
            Pick::Member(_, path) => path,
        };
        if !items.is_empty() && items.iter().all(|item| path.all(item).is_empty()) {
            let heads: Vec<String> = self.columns.iter().map(|column| column.head.to_lowercase()).collect();
            let failure = Failure::usage(format!("no object has \"{name}\" to sort by"));
            return Err(failure.with_next(format!("one of {}", heads.join(", "))));
        }
        // Sorting by age reverses the order, because the column's member is the creation time.
        let down = down != name.eq_ignore_ascii_case("age");
        let key = |item: &Value| path.all(item).first().map(|value| (*value).clone()).unwrap_or_default();
        items.sort_by(|left, right| {
            let order = compare(&key(left), &key(right));
            if down { order.reverse() } else { order }
        });
        Ok(())
    }
}

fn heads<'a, T>(picks: &'a [Pick<'a, T>]) -> Vec<String> {
    let head = |pick: &Pick<'_, T>| match pick {
        Pick::Known(column) => column.head.to_owned(),
        Pick::Member(name, _) => name.to_uppercase(),
    };
    picks.iter().map(head).collect()
}

fn joined(path: &Path, item: &Value) -> String {
    path.all(item).into_iter().map(plain).collect::<Vec<_>>().join(",")
}

/// Quotes a CSV cell by RFC 4180.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

/// Compares numbers by value and everything else as text.
fn compare(left: &Value, right: &Value) -> std::cmp::Ordering {
    match (left.as_f64(), right.as_f64()) {
        (Some(left), Some(right)) => left.total_cmp(&right),
        _ => (left.is_null(), plain(left)).cmp(&(right.is_null(), plain(right))),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize)]
    struct Fruit {
        name: String,
        #[serde(default)]
        grams: f64,
    }

    const COLUMNS: [Column<Fruit>; 3] = [
        column("FRUIT", "name", |fruit, _| fruit.name.clone()),
        column("WEIGHT", "grams", |fruit, _| format!("{} g", fruit.grams)),
        wide("COLOUR", "more.colour", |_, _| "?".to_owned()),
    ];

    fn shown(form: &str, options: &ListOptions) -> String {
        let members = Members::These(&["name", "grams", "more"]);
        let list = List { columns: &COLUMNS, members, name: |fruit| format!("fruit/{}", fruit.name) };
        let items = json!([
            {"name": "pear", "grams": 150, "more": {"colour": "green, \"light\""}},
            {"name": "cherry", "grams": 8},
            {"name": "melon", "grams": 900.5},
        ]);
        match list.render(items, options, &form.parse().expect("a form"), &Look::default()) {
            Ok((text, count)) => format!("{text}({count})\n"),
            Err(failure) => format!("{failure}\n"),
        }
    }

    #[test]
    fn columns_order_and_filter() {
        let sorted = |order: &str| ListOptions { sort: Some(order.to_owned()), ..ListOptions::default() };
        let columns = |names: &[&str]| ListOptions {
            columns: names.iter().map(|name| (*name).to_owned()).collect(),
            no_headers: true,
            ..ListOptions::default()
        };
        let filter = "grams > 100 && name != 'melon'".parse().ok();
        let all = [
            shown("table", &ListOptions::default()),
            shown("wide", &ListOptions { limit: Some(1), ..ListOptions::default() }),
            shown("table", &sorted("weight")),
            shown("name", &sorted("-grams")),
            shown("csv", &ListOptions::default()),
            shown("table", &columns(&["more.colour", "weight"])),
            shown("jsonl", &ListOptions { filter, ..ListOptions::default() }),
            shown("table", &sorted("taste")),
            shown("table", &sorted("more.taste")),
            shown("table", &sorted("-wieght")),
            shown("csv", &columns(&["fruit", "gramms"])),
            shown("name", &ListOptions { filter: "grms > 100 || has(colour)".parse().ok(), ..ListOptions::default() }),
            shown("name", &ListOptions { filter: "weight > 1".parse().ok(), ..ListOptions::default() }),
            shown("name", &ListOptions { filter: "taste == 'sour'".parse().ok(), ..ListOptions::default() }),
        ];
        expect![[r#"
            FRUIT   WEIGHT
            pear    150 g
            cherry  8 g
            melon   900.5 g
            (3)
            FRUIT  WEIGHT  COLOUR
            pear   150 g   ?
            (1)
            FRUIT   WEIGHT
            cherry  8 g
            pear    150 g
            melon   900.5 g
            (3)
            fruit/melon
            fruit/pear
            fruit/cherry
            (3)
            name,grams,more.colour
            pear,150,"green, ""light"""
            cherry,8,
            melon,900.5,
            (3)
            ?  150 g
            ?  8 g
            ?  900.5 g
            (3)
            {"name":"pear","grams":150,"more":{"colour":"green, \"light\""}}
            (1)
            error: no object has "taste" to sort by
            one of fruit, weight, colour
            error: no object has "more.taste" to sort by
            one of fruit, weight, colour
            error: no object has "wieght" to sort by
            did you mean weight?
            error: no object has "gramms" for a column
            did you mean grams?
            error: no object has "grms" for the filter
            did you mean grams?
            error: no object has "weight" for the filter
            did you mean grams?
            error: no object has "taste" for the filter
            one of name, grams, more
        "#]]
        .assert_eq(&all.concat().replace("\r\n", "\n"));
    }
}
