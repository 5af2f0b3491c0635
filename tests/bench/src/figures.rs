//! Rows of figures: from latencies to a table or to JSON.

use std::time::Duration;

use serde_json::{Value, json};

/// One figure.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) concurrency: usize,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) p50_us: Option<f64>,
    pub(crate) p99_us: Option<f64>,
    /// The name of the baseline, and this figure divided by it.
    pub(crate) peer: Option<(String, f64)>,
}

impl Row {
    /// A rate, from the latencies of all operations and their total time.
    pub(crate) fn rate(name: &str, concurrency: usize, mut latencies: Vec<Duration>, took: Duration) -> Self {
        latencies.sort_unstable();
        let at = |share: f64| {
            let index = ((latencies.len() as f64 * share) as usize).min(latencies.len().saturating_sub(1));
            latencies.get(index).map(|latency| latency.as_secs_f64() * 1e6)
        };
        Self {
            name: name.to_owned(),
            concurrency,
            value: latencies.len() as f64 / took.as_secs_f64(),
            unit: "1/s",
            p50_us: at(0.50),
            p99_us: at(0.99),
            peer: None,
        }
    }

    /// A single value.
    pub(crate) fn amount(name: &str, value: f64, unit: &'static str) -> Self {
        Self { name: name.to_owned(), concurrency: 1, value, unit, p50_us: None, p99_us: None, peer: None }
    }

    /// Compares this figure's median with a baseline in microseconds.
    pub(crate) fn median_against(mut self, peer: &str, limit_us: Option<f64>) -> Self {
        self.peer = limit_us.zip(self.p50_us).map(|(limit, median)| (peer.to_owned(), median / limit));
        self
    }

    /// Compares this figure's value with another one.
    pub(crate) fn value_against(mut self, peer: &str, other: f64) -> Self {
        self.peer = Some((peer.to_owned(), self.value / other));
        self
    }

    pub(crate) fn json(&self) -> Value {
        let rounded = |value: f64| json!((value * 1000.0).round() / 1000.0);
        let mut row = json!({
            "name": self.name, "concurrency": self.concurrency, "value": rounded(self.value), "unit": self.unit,
            "p50_us": self.p50_us.map(rounded), "p99_us": self.p99_us.map(rounded),
        });
        if let Some((peer, ratio)) = &self.peer {
            row["peer"] = json!(peer);
            row["ratio"] = rounded(*ratio);
        }
        row
    }

    /// The cells of the row in a table.
    pub(crate) fn cells(&self) -> [String; 7] {
        let microseconds = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.0}"));
        let value = if self.value < 100.0 { format!("{:.2}", self.value) } else { format!("{:.0}", self.value) };
        let (peer, ratio) =
            self.peer.clone().map_or_else(Default::default, |(peer, ratio)| (peer, format!("{ratio:.2}")));
        let (p50, p99) = (microseconds(self.p50_us), microseconds(self.p99_us));
        [self.name.clone(), self.concurrency.to_string(), format!("{value} {}", self.unit), p50, p99, peer, ratio]
    }
}

/// The header for [`Row::cells`].
pub(crate) const HEAD: [&str; 7] = ["name", "concurrency", "value", "p50 µs", "p99 µs", "baseline", "ratio"];

/// The median of a row among `rows`, in microseconds.
pub(crate) fn median(rows: &[Row], name: &str, concurrency: usize) -> Option<f64> {
    rows.iter().find(|row| row.name == name && row.concurrency == concurrency)?.p50_us
}

/// All rows as a table.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut lines = vec![HEAD.map(str::to_owned)];
    lines.extend(rows.iter().map(Row::cells));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let line = |cells: &[String; 7]| {
        let padded = cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
    };
    lines.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_its_median_and_its_tail() {
        let latencies = (1..=100).map(Duration::from_micros).collect();
        let row = Row::rate("x", 4, latencies, Duration::from_millis(10)).median_against("y", Some(102.0));
        let wanted = r#"{"name":"x","concurrency":4,"value":10000.0,"unit":"1/s","p50_us":51.0,"p99_us":100.0,"peer":"y","ratio":0.5}"#;
        assert_eq!(row.json().to_string(), wanted);
        assert!(table(&[row]).lines().count() == 2);
    }

    #[test]
    fn nothing_measured_has_no_median() {
        let row = Row::rate("x", 1, Vec::new(), Duration::from_secs(1)).median_against("y", Some(1.0));
        assert!(row.p50_us.is_none() && row.peer.is_none());
    }
}
