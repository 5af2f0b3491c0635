//! The server options of a row: converts its flags and pool settings to options of Atlas.

use serde_json::Value;

use crate::result::{Judged, Stop};
use crate::row::{members, unknown};

/// The start options of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setup {
    /// Flags of the controller.
    pub(crate) controller: Vec<String>,
    /// Flags of the worker.
    worker: Vec<String>,
    /// Variables of the worker's environment.
    pub(crate) worker_variables: Vec<(String, String)>,
    /// The folder of agents; none for the bundled agents.
    pub(crate) agents: Option<String>,
    /// The orchestrator that is selected at the start.
    pub(crate) orchestrator: Option<String>,
    /// The folder of skills that the server offers.
    pub(crate) skills: Option<String>,
    /// Whether the row declares hardware, against which demands are then checked.
    checked: bool,
}

impl Setup {
    /// The defaults of Atlas for Python (compatibility §26): four concurrent jobs and two warm slots on any machine.
    /// Its queue limit of 1000 is the default of Atlas too.
    pub(crate) fn new() -> Self {
        let mut setup = Self {
            controller: Vec::new(),
            worker: Vec::new(),
            worker_variables: Vec::new(),
            agents: None,
            orchestrator: None,
            skills: None,
            checked: false,
        };
        setup.set("--places", "4");
        setup.set("--warm-pool-size", "2");
        setup
    }

    /// Sets a variable of the worker's environment.
    pub(crate) fn with_worker_variable(mut self, name: &str, value: &str) -> Self {
        self.worker_variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds the members of a row's `pool`.
    pub(crate) fn with_pool(mut self, pool: &Value) -> Result<Self, Stop> {
        for (name, value) in members(pool) {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            match name.as_str() {
                "max_concurrent" => self.set("--places", &value),
                "warm_pool_size" => self.set("--warm-pool-size", &value),
                "idle_timeout" => self.set("--idle-timeout", &milliseconds(&value)?),
                "warmup_timeout" => self.set("--warmup-timeout", &milliseconds(&value)?),
                "max_size" => self.controller.extend(["--queue-max-size".to_owned(), value]),
                other => return Err(Stop::skip(format!("pools with \"{other}\""))),
            }
        }
        Ok(self)
    }

    /// Adds flags of Atlas for Python's `serve` (compatibility §17.2); `dir` is the row's folder.
    pub(crate) fn with_flags(mut self, flags: &Value, dir: &str) -> Result<Self, Stop> {
        let mut flags = flags.as_array().into_iter().flatten().filter_map(Value::as_str);
        while let Some(flag) = flags.next() {
            let value = flags.next().ok_or_else(|| Stop::skip(format!("the server's flag {flag} without a value")))?;
            let value = value.replace("{dir}", dir);
            match flag {
                // Ignored, because each row has its own folder and address.
                "--db" | "--host" | "--port" => {}
                "--agents-path" => self.agents = Some(value).filter(|path| path != "{examples}"),
                "--triggers-path" => self.controller.extend([flag.to_owned(), value]),
                // Triggers fire at their time, whatever the interval.
                "--trigger-poll" => {}
                "--orchestrator" => self.orchestrator = Some(value),
                "--skills-path" => self.skills = Some(value),
                "--memory" => self.controller.extend(["--memory-file".to_owned(), value]),
                "--memory-auth" => self.controller.extend(["--memory-token".to_owned(), value]),
                "--knowledge" => self.controller.extend(["--knowledge-folder".to_owned(), value]),
                "--memory-url" | "--knowledge-url" | "--knowledge-policy" => {
                    self.controller.extend([flag.to_owned(), value]);
                }
                "--max-concurrent" => self.set("--places", &value),
                "--warm-pool-size" => self.set("--warm-pool-size", &value),
                "--gpus" | "--gpu-vram" | "--pool-memory" | "--pool-cpus" | "--pool-arch" | "--pool-device" => {
                    self.checked = true;
                    self.worker.extend([flag.to_owned(), value]);
                }
                other => return Err(Stop::skip(format!("the server's flag {other}"))),
            }
        }
        Ok(self)
    }

    /// The flags of the worker. Without a hardware flag, demands are not checked, as in Atlas for Python.
    pub(crate) fn worker_flags(&self) -> Vec<String> {
        let mut flags = self.worker.clone();
        if !self.checked {
            flags.extend(["--hardware-checks".to_owned(), "off".to_owned()]);
        }
        flags
    }

    /// Sets a flag of the worker, and replaces an earlier value.
    fn set(&mut self, flag: &str, value: &str) {
        match self.worker.iter().position(|known| known == flag) {
            Some(index) => value.clone_into(&mut self.worker[index + 1]),
            None => self.worker.extend([flag.to_owned(), value.to_owned()]),
        }
    }
}

/// Converts seconds, which may have a fraction, to a duration option of Atlas.
fn milliseconds(seconds: &str) -> Result<String, Stop> {
    let seconds: f64 = seconds.parse().map_err(|error| Stop::system("read a number of seconds", error))?;
    Ok(format!("{}ms", (seconds * 1e3).round()))
}

/// Skips a row whose input has members that are not in `known`.
pub(crate) fn only(input: &Value, known: &[&str]) -> Judged {
    // An empty registry of skills is the same as no registry.
    let empty = |member: &str| input.get(member).and_then(Value::as_array).is_some_and(Vec::is_empty);
    match unknown(input, known) {
        Some("skills") if empty("skills") => Ok(()),
        Some(member) => Err(Stop::skip(format!("rows with \"{member}\""))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn flags_and_pools_become_options() {
        let pool = json!({"max_concurrent": 8, "idle_timeout": 0.5, "warmup_timeout": "2", "max_size": 2});
        let setup = Setup::new().with_pool(&pool).expect("known");
        assert_eq!(
            setup.worker.join(" "),
            "--places 8 --warm-pool-size 2 --idle-timeout 500ms --warmup-timeout 2000ms"
        );
        assert_eq!(setup.controller.join(" "), "--queue-max-size 2");
        assert!(setup.worker_flags().ends_with(&["--hardware-checks".to_owned(), "off".to_owned()]));
        let flags = json!(["--db", "{dir}/x", "--gpus", "2", "--pool-device", "/dev/a", "--agents-path", "{dir}/a"]);
        let setup = Setup::new().with_flags(&flags, "/tmp/r").expect("known");
        assert_eq!(setup.worker.join(" "), "--places 4 --warm-pool-size 2 --gpus 2 --pool-device /dev/a");
        assert_eq!(setup.worker_flags(), setup.worker);
        assert_eq!(setup.agents.as_deref(), Some("/tmp/r/a"));
        let flags = json!(["--memory", "{dir}/m", "--knowledge", "{dir}/k", "--knowledge-policy", "p.yaml"]);
        let setup = Setup::new().with_flags(&flags, "/tmp/r").expect("known");
        let expected = "--memory-file /tmp/r/m --knowledge-folder /tmp/r/k --knowledge-policy p.yaml";
        assert_eq!(setup.controller.join(" "), expected);
    }

    #[test]
    fn what_is_unknown_is_not_covered() {
        let flags = json!(["--mcp-port", "0"]);
        assert_eq!(Setup::new().with_flags(&flags, ""), Err(Stop::skip("the server's flag --mcp-port")));
        assert_eq!(only(&json!({"jobs": [], "skills": []}), &["jobs"]), Ok(()));
        assert_eq!(only(&json!({"skills": ["x"]}), &["jobs"]), Err(Stop::skip("rows with \"skills\"")));
    }
}
