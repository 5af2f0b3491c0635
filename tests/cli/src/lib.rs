//! Transcripts of `atlasctl`: command, stdout, stderr, exit code, with times, ids, digests, ports and hardware masked.
//!
//! The pages under `transcripts/` show what a user sees; `UPDATE_EXPECT=1` rewrites them, and a person reviews the
//! difference.

#[cfg(test)]
mod access;
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod ask_docs;
#[cfg(test)]
mod chains;
#[cfg(test)]
mod chats;
#[cfg(test)]
mod document_bases;
#[cfg(test)]
mod document_readers;
#[cfg(test)]
mod endings;
#[cfg(test)]
mod evals;
#[cfg(test)]
mod first_minutes;
#[cfg(test)]
mod follow;
#[cfg(test)]
mod followed;
#[cfg(test)]
mod forms;
#[cfg(test)]
mod graphs;
#[cfg(test)]
mod laptop;
#[cfg(test)]
mod lost_attempts;
#[cfg(test)]
mod mask;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod models;
#[cfg(test)]
mod namespaces_sent;
#[cfg(test)]
mod objects;
#[cfg(test)]
mod operate;
#[cfg(test)]
mod orchestrators;
#[cfg(test)]
mod questions;
#[cfg(test)]
mod remembered;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod session;
#[cfg(test)]
mod shipped;
#[cfg(test)]
mod skills;
#[cfg(test)]
mod three_controllers;
#[cfg(test)]
mod traces;
#[cfg(test)]
mod triggers;
#[cfg(test)]
mod wishes;
#[cfg(test)]
mod without_server;
