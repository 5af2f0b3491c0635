//! Servers that are programs. Who starts a program decides how it is contained; this crate only speaks with it.

use async_trait::async_trait;
use atlas_types::SecretText;
use tokio::io::{AsyncRead, AsyncWrite};

/// The program of a server.
pub struct Program<'a> {
    /// The name of the server, for messages.
    pub server: &'a str,
    pub command: &'a str,
    pub args: &'a [SecretText],
    /// Its variables beside those that every program gets.
    pub env: &'a [(&'a str, &'a SecretText)],
    pub directory: Option<&'a str>,
    /// What it may do, as [`crate::Target::confined`] was told.
    pub rights: Option<&'a str>,
}

/// A program that runs. It is ended completely when `keeper` is dropped.
pub struct RunningProgram {
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub keeper: Box<dyn Send + Sync>,
    /// What it said about its end, if anything: an error of the system, or the last line of its standard error.
    pub complaint: Box<dyn Fn() -> Option<String> + Send + Sync>,
}

/// Starts programs.
#[async_trait]
pub trait Launcher: Send + Sync {
    /// Starts a program, with a reason in words if it cannot.
    async fn launch(&self, program: Program<'_>) -> Result<RunningProgram, String>;
}
