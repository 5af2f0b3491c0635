//! The metrics of a program as a message, from what it shows at `/metrics`, so that both tell the same. Pure.

use std::collections::BTreeMap;

use atlas_telemetry::{Declaration, Kind, table};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
};

use crate::value::label;

/// The labels of a series.
type Labels = Vec<(String, String)>;

/// The samples of a page by name, with the labels of each.
struct Page(BTreeMap<String, Vec<(Labels, f64)>>);

/// The name of the label with the bound of a bucket.
const BOUND: &str = "le";

/// The metrics of a page in the OpenMetrics text format. `began` and `now` are times in nanoseconds since 1970.
pub(crate) fn metrics(page: &str, began: u64, now: u64) -> Vec<Metric> {
    let page = Page::read(page);
    table().iter().filter_map(|declaration| page.metric(declaration, began, now)).collect()
}

impl Page {
    /// Lines that are no samples are left out.
    fn read(page: &str) -> Self {
        let mut samples: BTreeMap<String, Vec<(Labels, f64)>> = BTreeMap::new();
        for (name, labels, value) in page.lines().filter(|line| !line.starts_with('#')).filter_map(sample) {
            samples.entry(name).or_default().push((labels, value));
        }
        Self(samples)
    }

    fn samples(&self, name: &str) -> &[(Labels, f64)] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    fn metric(&self, declaration: &Declaration, began: u64, now: u64) -> Option<Metric> {
        let name = declaration.scrape_name();
        let cumulative = AggregationTemporality::Cumulative.into();
        let points = || -> Vec<NumberDataPoint> {
            let points = self.samples(&name).iter().map(|(labels, value)| NumberDataPoint {
                attributes: attributes(labels),
                start_time_unix_nano: if declaration.kind == Kind::Gauge { 0 } else { began },
                time_unix_nano: now,
                value: Some(Value::AsDouble(*value)),
                ..NumberDataPoint::default()
            });
            points.collect()
        };
        let (data, empty) = match declaration.kind {
            Kind::Counter => {
                let data_points = points();
                let empty = data_points.is_empty();
                (Data::Sum(Sum { data_points, aggregation_temporality: cumulative, is_monotonic: true }), empty)
            }
            Kind::Gauge => {
                let data_points = points();
                let empty = data_points.is_empty();
                (Data::Gauge(Gauge { data_points }), empty)
            }
            Kind::Histogram => {
                let data_points = self.histogram(&name, began, now);
                let empty = data_points.is_empty();
                (Data::Histogram(Histogram { data_points, aggregation_temporality: cumulative }), empty)
            }
        };
        (!empty).then(|| Metric {
            name: declaration.name.to_owned(),
            description: declaration.sentence.to_owned(),
            unit: declaration.unit.to_owned(),
            data: Some(data),
            ..Metric::default()
        })
    }

    fn histogram(&self, name: &str, began: u64, now: u64) -> Vec<HistogramDataPoint> {
        let mut buckets: BTreeMap<Labels, Vec<(f64, u64)>> = BTreeMap::new();
        for (labels, value) in self.samples(&format!("{name}_bucket")) {
            let (bound, labels): (Labels, Labels) = labels.iter().cloned().partition(|(label, _)| label == BOUND);
            let Some(bound) = bound.first().map(|(_, bound)| bound.parse().unwrap_or(f64::INFINITY)) else { continue };
            buckets.entry(labels).or_default().push((bound, *value as u64));
        }
        let sums: BTreeMap<_, _> =
            self.samples(&format!("{name}_sum")).iter().map(|(labels, sum)| (labels.clone(), *sum)).collect();
        let point = |(labels, mut buckets): (Labels, Vec<(f64, u64)>)| {
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            // A page counts all that is below a bound, a message what is between two bounds.
            let before = std::iter::once(0).chain(buckets.iter().map(|(_, count)| *count));
            let counts = buckets.iter().zip(before).map(|((_, count), before)| count.saturating_sub(before)).collect();
            HistogramDataPoint {
                attributes: attributes(&labels),
                start_time_unix_nano: began,
                time_unix_nano: now,
                count: buckets.last().map_or(0, |(_, count)| *count),
                sum: sums.get(&labels).copied(),
                bucket_counts: counts,
                explicit_bounds: buckets.iter().map(|(bound, _)| *bound).filter(|bound| bound.is_finite()).collect(),
                ..HistogramDataPoint::default()
            }
        };
        buckets.into_iter().map(point).collect()
    }
}

fn attributes(labels: &Labels) -> Vec<KeyValue> {
    labels.iter().map(|(name, value)| label(name, value)).collect()
}

/// A line such as `name{label="value"} 1.5`.
fn sample(line: &str) -> Option<(String, Labels, f64)> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            rest = rest.trim_start_matches(',');
            if let Some(after) = rest.strip_prefix('}') {
                rest = after;
                break;
            }
            let (label, value) = rest.split_once("=\"")?;
            let (value, after) = quoted(value)?;
            labels.push((label.to_owned(), value));
            rest = after;
        }
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some((name.to_owned(), labels, value))
}

/// A value up to its closing quote, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use atlas_telemetry::{ByAgent, Metrics};

    use super::*;

    #[test]
    fn each_instrument_with_a_series_is_sent() {
        let all = Metrics::new();
        all.job_submissions.inc_by(3);
        all.job_queue_wait.observe(0.5);
        all.job_queue_wait.observe(1e9);
        let agent = "a \"b\"\\\nc".to_owned();
        let _ = all.agent_health_status.get_or_create(&ByAgent { agent }).set(0.5);
        let sent = metrics(&all.render(), 1, 2);
        let find = |name: &str| sent.iter().find(|metric| metric.name == name).cloned().expect(name);
        let Some(Data::Sum(sum)) = find("atlas.job.submissions").data else { panic!("a counter") };
        assert_eq!(sum.data_points[0].value, Some(Value::AsDouble(3.0)));
        let Some(Data::Gauge(gauge)) = find("atlas.agent.health.status").data else { panic!("a gauge") };
        assert_eq!(gauge.data_points[0].attributes, [label("agent", "a \"b\"\\\nc")]);
        let wait = find("atlas.job.queue.wait");
        assert_eq!(wait.unit, "s");
        let Some(Data::Histogram(histogram)) = wait.data else { panic!("a histogram") };
        let point = &histogram.data_points[0];
        assert_eq!((point.count, point.sum), (2, Some(1e9 + 0.5)));
        assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
        assert_eq!((point.bucket_counts.iter().sum::<u64>(), point.bucket_counts.last()), (2, Some(&1)));
    }

    #[test]
    fn lines_that_are_no_samples_are_left_out() {
        for line in ["", "x", "x{", "x{a=\"b", "x{a=\"\\", "x{a} 1", "x y", "x{a=\"b\"}"] {
            assert_eq!(sample(line), None, "{line}");
        }
        assert_eq!(sample("x 1 1700000000"), Some(("x".to_owned(), Vec::new(), 1.0)));
    }
}
