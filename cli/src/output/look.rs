//! How times are printed.

use crate::words;

/// Time format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum TimeForm {
    /// How long ago.
    #[default]
    Relative,
    /// Date and time in UTC.
    Utc,
    /// Date and time where this program runs.
    Local,
    /// As RFC 3339.
    Rfc3339,
}

/// How times are printed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Look {
    /// The form.
    pub(crate) time: TimeForm,
    /// The current time, in Unix seconds.
    pub(crate) now: f64,
}

impl Look {
    /// Formats a time as requested; by default as an age.
    pub(crate) fn when(&self, unix_seconds: f64) -> String {
        match self.time {
            _ if unix_seconds <= 0.0 => String::new(),
            TimeForm::Relative => words::age(self.now - unix_seconds),
            TimeForm::Utc => words::date_and_time(unix_seconds),
            TimeForm::Local => words::local_date_and_time(unix_seconds),
            TimeForm::Rfc3339 => words::rfc3339(unix_seconds),
        }
    }
}
