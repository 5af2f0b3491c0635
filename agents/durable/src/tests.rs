use std::time::Duration;

mod programs;
mod texts;

/// How long a replay waits that has no limit, or a long one.
const PATIENCE: Duration = Duration::from_secs(120);
