//! Draws a trace as a tree of spans with a time line.

use super::{STEPS_MAX, Traced};
use crate::command::chain_run;
use crate::command::job::steps;
use crate::display::JobDisplay as _;
use crate::ending::waits;
use crate::output::Table;
use crate::words;

/// Characters of the time line.
const LINE_CHARS: u32 = 30;

/// Most characters of the name of a step.
const NAME_CHARS: usize = 40;

/// Most characters of an error or of the message of a check.
const TEXT_CHARS_MAX: usize = 80;

/// What happened between two moments.
#[derive(Debug, Default)]
struct Span {
    label: String,
    took_ms: Option<f64>,
    /// Unix times of its beginning and its end, if both are known.
    times: Option<(f64, f64)>,
    tokens: (u64, u64),
    cost_usd: f64,
    children: Vec<Span>,
}

/// The trace of a job as text.
pub(super) fn text(traced: &Traced) -> String {
    let root = span_of(traced);
    let mut ends = (f64::MAX, f64::MIN);
    root.extent(&mut ends);
    let has_models = root.has_models();
    let heads = if has_models { &["SPAN", "TOOK", "TOKENS", "COST", "TIME"][..] } else { &["SPAN", "TOOK", "TIME"] };
    let mut table = Table::new(heads);
    root.rows("", "", ends, has_models, &mut table);
    let mut text = table.text();
    let trace = &traced.trace;
    if !trace.chain_name.is_empty() {
        let run = if traced.job.run.is_empty() { String::new() } else { format!(", run {}", traced.job.run) };
        text += &format!("step {} of chain {}{run}\n", trace.step_index + 1, trace.chain_name);
    }
    if !trace.parent_trace_id.is_empty() {
        let begun = if chain_run::is_one(&trace.parent_trace_id) { "of" } else { "spawned by" };
        text += &format!("{begun} {}\n", trace.parent_trace_id);
    }
    text
}

/// A job: its phases, the steps and jobs below its execution, and what its output was checked for.
fn span_of(traced: &Traced) -> Span {
    let job = &traced.job;
    let has_ended = job.is_terminal();
    let status = if has_ended { job.status.clone() } else { waits(job) };
    let mut spans = Vec::new();
    if job.started_at > 0.0 {
        // The latest start counts, so this includes attempts that were lost.
        let label = if job.attempt > 1 { "queued, and earlier attempts" } else { "queued" };
        spans.push(Span::between(label, job.created_at, job.started_at));
        if !job.warm && job.warmup_ms > 0.0 {
            spans.push(Span::between("cold start", job.started_at, job.started_at + job.warmup_ms / 1e3));
        }
    }
    let mut inner: Vec<Span> = traced.steps.iter().filter(|step| step.kind != "start").map(step).collect();
    if traced.steps.len() == STEPS_MAX {
        inner.push(Span::note(format!("more: atlasctl job steps {} --after {}", job.id, STEPS_MAX - 1)));
    }
    // A retry of a step stands after the step's first job.
    inner.extend(traced.children.iter().flat_map(|child| std::iter::once(child).chain(&child.retries)).map(span_of));
    if job.execution_ms > 0.0 && has_ended {
        let start = job.completed_at - job.execution_ms / 1e3;
        spans.push(Span { children: inner, ..Span::between("execution", start, job.completed_at) });
    } else {
        spans.extend(inner);
    }
    for check in &traced.trace.eval_results {
        let result = if check.passed { "passed".to_owned() } else { format!("failed, {}", short(&check.message)) };
        spans.push(Span::note(format!("check {}: {result}", check.name)));
    }
    let error = job.error_text();
    if !error.is_empty() {
        spans.push(Span::note(format!("error: {}", short(&error))));
    }
    if !job.retried_by.is_empty() {
        spans.push(Span::note(format!("retried as {}", job.retried_by)));
    }
    Span {
        label: format!("{}  {}, {status}", job.id, job.agent()),
        took_ms: has_ended.then(|| job.total_ms()),
        times: has_ended.then_some((job.created_at, job.completed_at)),
        tokens: (job.tokens_input, job.tokens_output),
        cost_usd: job.cost_usd,
        children: spans,
    }
}

fn step(step: &super::Step) -> Span {
    Span {
        label: match steps::name_in(&step.outcome) {
            Some(name) if !name.is_empty() => format!("{}  {}", step.kind, words::short(name, NAME_CHARS)),
            _ => step.kind.clone(),
        },
        took_ms: steps::took(step.duration_ms),
        tokens: (step.tokens_input, step.tokens_output),
        cost_usd: step.cost_usd,
        ..Span::default()
    }
}

/// The first line of a text, cut.
fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut cut: String = line.chars().take(TEXT_CHARS_MAX).collect();
    if cut.len() < text.trim_end().len() {
        cut.push('…');
    }
    cut
}

impl Span {
    fn note(label: String) -> Self {
        Self { label, ..Self::default() }
    }

    fn between(label: &str, start: f64, end: f64) -> Self {
        let took_ms = Some((end - start) * 1e3);
        Self { label: label.to_owned(), took_ms, times: Some((start, end)), ..Self::default() }
    }

    fn extent(&self, ends: &mut (f64, f64)) {
        if let Some((start, end)) = self.times {
            *ends = (ends.0.min(start), ends.1.max(end));
        }
        self.children.iter().for_each(|child| child.extent(ends));
    }

    fn has_models(&self) -> bool {
        self.tokens != (0, 0) || self.cost_usd > 0.0 || self.children.iter().any(Self::has_models)
    }

    /// Adds the row of this span and those below it. `branch` is the line drawing before its own row, `trunk` the one before the rows
    /// of its children.
    fn rows(&self, branch: &str, trunk: &str, ends: (f64, f64), has_models: bool, table: &mut Table) {
        let took = self.took_ms.map(words::milliseconds).unwrap_or_default();
        let mut cells = vec![format!("{branch}{}", self.label), took];
        if has_models {
            let (input, output) = self.tokens;
            cells.push(if self.tokens == (0, 0) { String::new() } else { format!("{input} in, {output} out") });
            cells.push(if self.cost_usd > 0.0 { words::dollars(self.cost_usd) } else { String::new() });
        }
        cells.push(self.times.map(|times| bar(times, ends)).unwrap_or_default());
        table.row(cells);
        for (index, child) in self.children.iter().enumerate() {
            let (elbow, side) =
                if index + 1 == self.children.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            child.rows(&format!("{trunk}{elbow}"), &format!("{trunk}{side}"), ends, has_models, table);
        }
    }
}

/// Where a span is between the ends of the time line; at least one character.
fn bar((start, end): (f64, f64), (first, last): (f64, f64)) -> String {
    let total = last - first;
    // A time that is no number, or a line without length, is drawn at the beginning.
    let at = |time: f64| {
        let share = if total > 0.0 { ((time - first) / total).clamp(0.0, 1.0) } else { 0.0 };
        (share * f64::from(LINE_CHARS)).round() as usize
    };
    let begin = at(start).min(LINE_CHARS as usize - 1);
    let chars = at(end).saturating_sub(begin).max(1);
    " ".repeat(begin) + &"━".repeat(chars)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::super::{Check, Step, Trace};
    use super::*;
    use atlas_api::types::Job;
    use serde_json::{Value, json};

    fn job(id: &str, created_at: f64, completed_at: f64) -> Job {
        Job {
            id: id.to_owned(),
            agent_name: "a".to_owned(),
            agent_version: "1.0.0".to_owned(),
            status: "completed".to_owned(),
            created_at,
            started_at: created_at + 0.1,
            completed_at,
            warm: true,
            execution_ms: (completed_at - created_at - 0.1) * 1e3,
            ..Job::default()
        }
    }

    fn check(traced: &Traced, expected: &Expect) {
        expected.assert_eq(&text(traced));
    }

    #[test]
    fn phases_steps_and_children_are_spans() {
        let model = |duration_ms, tokens_input, cost_usd| Step {
            kind: "model".to_owned(),
            duration_ms,
            tokens_input,
            tokens_output: 40,
            cost_usd,
            outcome: Value::Null,
        };
        let start = Step { kind: "start".to_owned(), ..Step::default() };
        let child = Traced { job: job("job-2", 1.5, 2.5), ..Traced::default() };
        let mut root = job("job-1", 1.0, 4.0);
        (root.warm, root.warmup_ms, root.execution_ms) = (false, 400.0, 2500.0);
        (root.tokens_input, root.tokens_output, root.cost_usd) = (1900, 80, 0.0062);
        let trace = Trace {
            eval_results: vec![
                Check { name: "short".to_owned(), passed: true, message: String::new() },
                Check { name: "polite".to_owned(), passed: false, message: "no greeting\nat all".to_owned() },
            ],
            chain_name: "nightly".to_owned(),
            step_index: 2,
            parent_trace_id: "job-0".to_owned(),
        };
        let steps = vec![start, model(600.0, 900, 0.0031), model(700.0, 1000, 0.0031)];
        check(
            &Traced { job: root, trace, steps, children: vec![child], ..Traced::default() },
            &expect![[r#"
            SPAN                                   TOOK    TOKENS           COST     TIME
            job-1  a 1.0.0, completed              3.0 s   1900 in, 80 out  $0.0062  ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
            ├─ queued                              100 ms  -                -        ━
            ├─ cold start                          400 ms  -                -         ━━━━
            ├─ execution                           2.5 s   -                -             ━━━━━━━━━━━━━━━━━━━━━━━━━
            │  ├─ model                            600 ms  900 in, 40 out   $0.0031  -
            │  ├─ model                            700 ms  1000 in, 40 out  $0.0031  -
            │  └─ job-2  a 1.0.0, completed        1.0 s   -                -             ━━━━━━━━━━
            │     ├─ queued                        100 ms  -                -             ━
            │     └─ execution                     900 ms  -                -              ━━━━━━━━━
            ├─ check short: passed                 -       -                -        -
            └─ check polite: failed, no greeting…  -       -                -        -
            step 3 of chain nightly
            spawned by job-0
        "#]],
        );
    }

    #[test]
    fn steps_of_a_durable_program_have_their_names() {
        let step = |kind: &str, name: &str, duration_ms| Step {
            kind: kind.to_owned(),
            duration_ms,
            outcome: json!({"call": format!("step:{name}:00:1"), "name": name}),
            ..Step::default()
        };
        let steps = vec![step("code", "charge", 1_500.0), step("question", "", 0.0)];
        check(
            &Traced { job: job("job-1", 1.0, 3.0), steps, ..Traced::default() },
            &expect![[r#"
            SPAN                       TOOK    TIME
            job-1  a 1.0.0, completed  2.0 s   ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
            ├─ queued                  100 ms  ━━
            └─ execution               1.9 s     ━━━━━━━━━━━━━━━━━━━━━━━━━━━━
               ├─ code  charge         1.5 s   -
               └─ question             -       -
        "#]],
        );
    }

    #[test]
    fn a_job_that_failed_says_why() {
        let mut failed = job("job-1", 1.0, 2.0);
        failed.status = "failed".to_owned();
        failed.error = format!("Output validation: {}", "x".repeat(200));
        failed.retried_by = "job-2".to_owned();
        check(
            &Traced { job: failed, ..Traced::default() },
            &expect![[r#"
            SPAN                                                                                         TOOK    TIME
            job-1  a 1.0.0, failed                                                                       1.0 s   ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
            ├─ queued                                                                                    100 ms  ━━━
            ├─ execution                                                                                 900 ms     ━━━━━━━━━━━━━━━━━━━━━━━━━━━
            ├─ error: Output validation: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…  -       -
            └─ retried as job-2                                                                          -       -
        "#]],
        );
    }

    #[test]
    fn a_job_that_has_not_ended_has_no_end() {
        let mut running = job("job-1", 1.0, 0.0);
        (running.status, running.execution_ms, running.attempt) = ("running".to_owned(), 0.0, 2);
        let child = Traced { job: job("job-2", 1.2, 1.4), ..Traced::default() };
        check(
            &Traced { job: running, children: vec![child], ..Traced::default() },
            &expect![[r#"
            SPAN                             TOOK    TIME
            job-1  a 1.0.0, running          -       -
            ├─ queued, and earlier attempts  100 ms  ━━━━━━━━
            └─ job-2  a 1.0.0, completed     200 ms                 ━━━━━━━━━━━━━━━
               ├─ queued                     100 ms                 ━━━━━━━━
               └─ execution                  100 ms                         ━━━━━━━
        "#]],
        );
        let mut pending = job("job-1", 1.0, 0.0);
        (pending.status, pending.started_at, pending.execution_ms) = ("pending".to_owned(), 0.0, 0.0);
        check(
            &Traced { job: pending, ..Traced::default() },
            &expect![[r#"
            SPAN                     TOOK  TIME
            job-1  a 1.0.0, pending  -     -
        "#]],
        );
    }

    #[test]
    fn bars_stay_on_the_line() {
        for (span, ends) in [((0.0, 1.0), (0.0, 0.0)), ((5.0, 9.0), (0.0, 1.0)), ((f64::NAN, 1.0), (0.0, 1.0))] {
            let bar = bar(span, ends);
            assert!(bar.ends_with('━') && bar.chars().count() <= LINE_CHARS as usize, "{span:?} {bar:?}");
        }
        assert_eq!(bar((0.0, 0.5), (0.0, 1.0)), "━".repeat(15));
        assert_eq!(bar((1.0, 1.0), (0.0, 1.0)), " ".repeat(29) + "━");
    }

    #[test]
    fn many_steps_are_not_all_drawn() {
        let step = || Step { kind: "effect".to_owned(), ..Step::default() };
        let steps = (0..STEPS_MAX).map(|_| step()).collect();
        let text = text(&Traced { job: job("job-1", 1.0, 2.0), steps, ..Traced::default() });
        assert!(text.contains("more: atlasctl job steps job-1 --after 199"), "{text}");
    }
}
