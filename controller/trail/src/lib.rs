//! The audit trail: the records of all controllers read as one (`reader`), approvals that nobody gave (`late_approvals`), and receipts of
//! jobs (`receipt`). Records of changes and denials are made by the desk.

mod late_approvals;
mod reader;
mod receipt;

pub use late_approvals::record_unanswered;
pub use reader::{AuditCursor, AuditQuery, MergedAudit, MissingAudit, read};
pub use receipt::receipt;
