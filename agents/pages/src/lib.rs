//! Pages of websites as documents, and what a document base names as its sources.
//!
//! [`Source`] reads what a base names. [`markdown`] turns HTML into text, [`Page`] finds the links of a page, [`Robots`] and [`Sitemap`] read
//! what websites say about themselves, and [`kind`] and [`decoded`] what an answer is. [`is_public`] and [`Exemption`] say where requests may go.
//!
//! Pure: nothing here asks anybody. All of it reads text that strangers wrote: time and memory grow with the length of the text, and what has
//! a bound in this crate says so.

/// The contract of the agent that reads the sources of document bases. The cluster registers and runs it.
pub const COLLECT_CONTRACT: &str = include_str!("collect.yaml");
/// The name of that agent.
pub const COLLECT_AGENT: &str = "document-collector";
/// Its command: a worker runs it in its own process.
pub const COLLECT_COMMAND: &str = "@collect";

mod content;
mod egress;
mod entities;
mod html;
mod loader;
mod page;
mod robots;
mod scan;
mod sitemap;
mod source;
mod split;
mod tags;

pub use content::{Kind, UnreadableText, decoded, gunzipped, kind};
pub use egress::{BadExemption, Exemption, is_public};
pub use html::markdown;
pub use loader::{BadLoader, Loader, LoaderCommand, loaded};
pub use page::{ADDRESS_BYTES_MAX, LINKS_MAX, Page, normal};
pub use robots::Robots;
pub use sitemap::{ENTRIES_MAX, Sitemap};
pub use source::{FORMS, Repository, Source, UnknownSource};
pub use split::{parts, written};
