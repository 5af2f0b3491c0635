//! Results that are written to disk before they are sent.

use std::sync::Arc;

use atlas_types::{Report, ReportResult};
use tracing::warn;

use super::{News, Pump};

impl Pump {
    /// Writes a result to disk outside this loop. If writing fails, the result is reported anyway.
    pub(super) fn save(&self, number: u64, report: Arc<Report>) {
        let (results, boot, news) = (self.results.clone(), self.identity.boot_id, self.news.clone());
        let env = self.env.clone();
        self.env.spawn("save result", async move {
            let job = report.job;
            let saved = env.spawn_blocking("save result", move || results.save(boot, number, &report)).join().await;
            if let Ok(Err(error)) = saved {
                warn!(%job, %error, "could not save a result before reporting it");
            }
            // If the pump has ended, nothing is reported.
            let _ = news.send(News::Saved { number }).await;
        });
    }

    /// Deletes an acknowledged result. A refused result is set aside outside this loop.
    pub(super) fn saved_answered(&self, number: u64, result: Option<ReportResult>) {
        let (results, boot) = (self.results.clone(), self.identity.boot_id);
        if result == Some(ReportResult::Applied) {
            return results.forget(boot, number);
        }
        self.env.spawn_blocking("lay result aside", move || results.not_taken(boot, number));
    }
}
