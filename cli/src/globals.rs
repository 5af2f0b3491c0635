//! The options that every verb has.

use crate::output::screen::ColourWhen;
use crate::output::{Form, TimeForm};

/// Where a cluster is expected by default.
pub(crate) const SERVER_DEFAULT: &str = "http://127.0.0.1:7400";

/// Their heading, below the options of the verb itself.
const GLOBAL: &str = "Global options";

/// The options that every verb has.
#[derive(Debug, clap::Args)]
pub(crate) struct Globals {
    /// Controller addresses, separated by commas; if one does not answer, the next is tried. Defaults to the current
    /// context, otherwise http://127.0.0.1:7400.
    #[arg(long, global = true, help_heading = GLOBAL)]
    #[arg(env = "ATLAS_SERVER", hide_env_values = true, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// Use the cluster with this name from the configuration file; see atlasctl context.
    #[arg(long, global = true, help_heading = GLOBAL)]
    #[arg(env = "ATLAS_CONTEXT", hide_env_values = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// File with the certificates to trust where an address begins with https://, such as ca.pem of the cluster; defaults
    /// to those that this machine trusts.
    #[arg(long, global = true, help_heading = GLOBAL)]
    #[arg(env = "ATLAS_CA_FILE", hide_env_values = true, value_name = "FILE")]
    pub(crate) ca_file: Option<String>,
    /// Namespace of jobs, agents, objects and events; defaults to the namespace default.
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    #[arg(env = "ATLAS_NAMESPACE", hide_env_values = true, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Output format; json and yaml follow the API and are stable, tables are not. One of table, wide, json, jsonl,
    /// yaml, name, csv, template=TEXT and jsonpath=PATH.
    #[arg(short, long, global = true, help_heading = GLOBAL, default_value = "table", value_name = "FORM")]
    pub(crate) output: Form,
    /// Time format.
    #[arg(long, global = true, help_heading = GLOBAL)]
    #[arg(value_enum, default_value_t = TimeForm::Relative, value_name = "FORM")]
    pub(crate) time: TimeForm,
    /// When to use colour.
    #[arg(long, global = true, help_heading = GLOBAL)]
    #[arg(value_enum, default_value_t = ColourWhen::Auto, value_name = "WHEN")]
    pub(crate) color: ColourWhen,
    /// The same as --color never.
    #[arg(long, global = true, help_heading = GLOBAL, conflicts_with = "color")]
    pub(crate) no_color: bool,
    /// Let one controller answer reads alone, from what it knows; later changes may be missing. For a cluster whose
    /// majority is lost.
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) stale: bool,
    /// Print only results and errors.
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub(crate) quiet: bool,
    /// Print the log index at which the controller answered.
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub(crate) verbose: bool,
    /// Print each request with its trace id.
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) trace: bool,
}
