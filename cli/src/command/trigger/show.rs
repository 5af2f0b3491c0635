//! `atlasctl trigger show`.

use super::{Trigger, found, list};
use crate::answers;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Shown, Table};

/// `fired once, missed none`
fn fired(times: u64, missed: u64) -> String {
    let count = |number: u64| match number {
        0 => "none".to_owned(),
        1 => "once".to_owned(),
        number => format!("{number} times"),
    };
    let fired = if times == 0 { "never".to_owned() } else { count(times) };
    format!("{fired}, missed {}", count(missed))
}

pub(super) async fn run(context: &Context, name: &str) -> Result<Exit, Failure> {
    let value = found(context, name).await?;
    let trigger: Trigger = answers::read(&value)?;
    let when = |time: f64| context.look.when(time);
    let mut rows = vec![
        ("name", trigger.id.clone()),
        ("rule", trigger.rule()),
        ("target", trigger.target().to_owned()),
        ("state", list::state(&trigger).to_owned()),
        ("overlap", trigger.overlap.clone()),
        ("catch-up", trigger.catch_up.to_string()),
    ];
    if trigger.jitter_seconds > 0 {
        rows.push(("jitter", format!("{} s", trigger.jitter_seconds)));
    }
    if let Some(hmac) = &trigger.hmac {
        rows.push(("signed with", hmac.clone()));
    }
    if !trigger.webhook_secret.is_empty() {
        rows.push(("signed with", "a secret of its own".to_owned()));
    }
    if !matches!(trigger.scheme.as_str(), "" | "atlas") {
        rows.push(("signed by", trigger.scheme.clone()));
    }
    if trigger.replay_window_seconds > 0 {
        rows.push(("replay window", format!("{} s", trigger.replay_window_seconds)));
    }
    rows.push(("fired", fired(trigger.fire_count, trigger.missed)));
    if !trigger.error.is_empty() {
        rows.push(("error", trigger.error.clone()));
    }
    rows.extend(trigger.warnings.iter().map(|warning| ("warning", warning.clone())));
    let width = rows.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    let mut text: String = rows.iter().map(|(label, value)| format!("{label:width$}   {value}\n")).collect();
    if !trigger.firings.is_empty() {
        let mut table = Table::new(&["FIRED", "BY", "JOB"]);
        for firing in &trigger.firings {
            let job = firing.job_id.clone().unwrap_or_else(|| "skipped".to_owned());
            table.row(vec![when(firing.fired_at), firing.by.clone(), job]);
        }
        text += &format!("\n{}", table.text());
    }
    context.show(&Shown { value, text, names: vec![format!("trigger/{name}")] })?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::fired;

    #[test]
    fn counts_are_words() {
        let all = [(0, 0), (1, 0), (1, 1), (3, 0), (3, 2)].map(|(times, missed)| fired(times, missed));
        let words = [
            "never, missed none",
            "once, missed none",
            "once, missed once",
            "3 times, missed none",
            "3 times, missed 2 times",
        ];
        assert_eq!(all, words);
    }
}
