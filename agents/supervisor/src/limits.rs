//! Limits of a tree.

/// Agents of a tree.
pub const AGENTS_MAX: usize = 1000;

/// Tasks of one agent.
pub const TASKS_MAX: usize = 1000;

/// Messages that one agent has not read.
pub const MESSAGES_MAX: usize = 1000;

/// Questions that wait for an answer in one tree.
pub const QUESTIONS_MAX: usize = 1000;

/// Bytes of a message, a task, a prompt, a question or a reply.
pub const TEXT_BYTES_MAX: usize = 64 << 10;

/// How often an agent that stops is reminded of its running helpers before they are cancelled.
pub const REMINDERS_MAX: u32 = 3;
