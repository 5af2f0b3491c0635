//! The names that fit at a position of the command line.

use clap::{Arg, ArgAction, Command};

/// A kind of name that can be completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    Jobs,
    Agents,
    /// `NAME@VERSION`
    Versions,
    Nodes,
    Controllers,
    Models,
    Skills,
    Chains,
    Secrets,
    Triggers,
    Conversations,
    Knowledge,
    Bases,
    Questions,
    Orchestrators,
    Contexts,
    /// Objects of a kind without a name of its own here.
    Objects(&'static str),
    Words(&'static [&'static str]),
}

/// The last word of a line, and the names that can complete it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CompletionContext {
    pub(super) names: Vec<Names>,
    /// The options of the line that select the cluster.
    pub(super) cluster: Vec<String>,
    /// The part of the word that is typed already.
    prefix: String,
    /// The prefix `job/` before the name, if the word has one.
    kind: String,
}

const KINDS: &[&str] = &["job", "agent", "node", "controller"];
const KINDS_TO_EDIT: &[&str] = &["agent", "node"];
const KINDS_TO_LABEL: &[&str] =
    &["chain", "node", "model", "namespace", "policy", "secret", "skill", "tier", "trigger", "webhook"];

impl CompletionContext {
    /// The context of the last word; `words` excludes the program's name. None if the last word is not a name.
    pub(super) fn of(root: &Command, words: &[String]) -> Option<Self> {
        let (last, words) = words.split_last()?;
        let line = Line::read(root, words);
        let named = match line.wants {
            Some(option) => of_option(&line.path, option.get_long()?),
            None if last.starts_with('-') && !line.ended => None,
            None => line.positional().and_then(|argument| of_positional(&line, argument)),
        }?;
        let mut place = Self { names: named, cluster: line.cluster, prefix: last.clone(), kind: String::new() };
        if let Some((kind, _)) = last.split_once('/')
            && let Some(names) = of_kind(kind)
        {
            let generic = matches!(place.names[..], [Names::Words(_)]);
            if !generic && !place.names.contains(&names) {
                // `agent/` fits where a version is expected; any other kind does not fit here.
                if names != Names::Agents || !place.names.contains(&Names::Versions) {
                    return None;
                }
            } else {
                place.names = vec![names];
            }
            place.kind = format!("{kind}/");
        }
        Some(place)
    }

    /// The names that start with the typed part of the word.
    pub(super) fn fitting(&self, names: Vec<String>) -> Vec<String> {
        let names = names.into_iter().map(|name| format!("{}{name}", self.kind));
        // A shell would split a name at whitespace, and a terminal would interpret control characters.
        let plain = |name: &String| !name.contains(|c: char| c.is_whitespace() || c.is_control());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(&self.prefix) && plain(name)).collect();
        names.sort();
        names.dedup();
        names
    }
}

/// The meaning of the words before the last one.
struct Line<'a> {
    command: &'a Command,
    path: Vec<&'a str>,
    /// The words that are not options.
    given: Vec<&'a str>,
    cluster: Vec<String>,
    /// The option that expects its value in the next word.
    wants: Option<&'a Arg>,
    /// Whether `--` has ended the options.
    ended: bool,
}

impl<'a> Line<'a> {
    fn read(root: &'a Command, words: &'a [String]) -> Self {
        let mut line =
            Self { command: root, path: Vec::new(), given: Vec::new(), cluster: Vec::new(), wants: None, ended: false };
        words.iter().for_each(|word| line.word(word));
        line
    }

    fn word(&mut self, word: &'a str) {
        if let Some(option) = self.wants.take() {
            self.value(option, word);
        } else if self.ended {
            self.given.push(word);
        } else if word == "--" {
            self.ended = true;
        } else if let Some(option) = word.strip_prefix("--") {
            let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
            let option = self.command.get_arguments().find(|argument| argument.get_long() == Some(name));
            self.option(option, value);
        } else if let Some(short) = word.strip_prefix('-').and_then(|letters| letters.chars().next()) {
            let value = Some(&word[1 + short.len_utf8()..]).filter(|value| !value.is_empty());
            let option = self.command.get_arguments().find(|argument| argument.get_short() == Some(short));
            self.option(option, value);
        } else if let Some(child) = self.command.find_subcommand(word).filter(|_| self.given.is_empty()) {
            self.command = child;
            self.path.push(child.get_name());
        } else {
            self.given.push(word);
        }
    }

    fn option(&mut self, option: Option<&'a Arg>, value: Option<&str>) {
        let takes = |option: &&Arg| matches!(option.get_action(), ArgAction::Set | ArgAction::Append);
        let Some(option) = option.filter(takes) else { return };
        match value {
            Some(value) => self.value(option, value),
            None => self.wants = Some(option),
        }
    }

    fn value(&mut self, option: &Arg, value: &str) {
        if let Some(name @ ("server" | "context")) = option.get_long() {
            self.cluster.push(format!("--{name}={value}"));
        }
    }

    /// The positional argument that the next word would be.
    fn positional(&self) -> Option<&'a Arg> {
        let all: Vec<&Arg> = self.command.get_positionals().collect();
        let many = |argument: &&Arg| matches!(argument.get_action(), ArgAction::Append);
        all.get(self.given.len()).copied().or_else(|| all.last().copied().filter(many))
    }
}

fn of_option(path: &[&str], name: &str) -> Option<Vec<Names>> {
    match (path.first(), name) {
        // In these commands, the option is a folder or the name of a new process.
        (Some(&("dev" | "dev-member")), "agent" | "node") => None,
        (_, "agent") => Some(vec![Names::Agents]),
        (_, "node") => Some(vec![Names::Nodes]),
        (Some(&("chat" | "ask")), "model") => Some(vec![Names::Models]),
        (Some(&("chat" | "ask" | "run")), "conversation") => Some(vec![Names::Conversations]),
        (_, "context") => Some(vec![Names::Contexts]),
        (Some(&"audit"), "member") => Some(vec![Names::Controllers]),
        _ => None,
    }
}

fn of_positional(line: &Line<'_>, argument: &Arg) -> Option<Vec<Names>> {
    let name = argument.get_value_names().and_then(|names| names.first())?.as_str();
    Some(match (&line.path[..], name) {
        (["explain"] | ["job" | "trace" | "graph", ..] | ["audit", "receipt"], "ID" | "JOB") => vec![Names::Jobs],
        (["chat"], "AGENT|MODEL") => vec![Names::Agents, Names::Models],
        (["run"], "AGENT") => vec![Names::Agents, Names::Chains],
        (["chain", "show"], "NAME") | (["chain", ..], "FILE|NAME") => vec![Names::Chains],
        (["agent", "show" | "schema" | "versions" | "eval" | "data-set"] | ["mcp", "pin" | "unpin"], "NAME") => {
            vec![Names::Agents]
        }
        (["logs"], _) => vec![Names::Jobs, Names::Agents, Names::Nodes],
        (["agent", "diff" | "deprecate" | "resume" | "retire" | "delete"], _) => vec![Names::Versions],
        (["node", ..], "NAME") => vec![Names::Nodes],
        (["model", "show" | "check" | "remove" | "login" | "logout"], "NAME") | (["model", "tier"], "MODEL") => {
            vec![Names::Models]
        }
        (["mcp", "show" | "test" | "remove" | "accept-changes" | "login" | "logout"], "NAME") => {
            vec![Names::Objects("mcp-server")]
        }
        (["auth", "token", "revoke"], "NAME") => vec![Names::Objects("token")],
        (["auth", "oidc", "show" | "remove"], "NAME") => vec![Names::Objects("issuer")],
        (["graph", "run"], _) => vec![Names::Agents],
        (["conversation", ..], "ID") => vec![Names::Conversations],
        (["question", ..], "ID") => vec![Names::Questions],
        (["rag", ..], "NAME") => vec![Names::Bases],
        (["knowledge", ..], "ID") => vec![Names::Knowledge],
        (["orchestrator", "set"], _) => vec![Names::Orchestrators, Names::Objects("orchestrator")],
        (["policy", "why"], _) => vec![Names::Agents],
        (["policy", "show" | "remove"], "NAME") => vec![Names::Objects("policy")],
        (["skill", "show" | "test" | "remove"], "NAME") => vec![Names::Skills],
        (["secret", "set" | "rotate" | "show" | "who-can-read" | "remove"], "NAME") => vec![Names::Secrets],
        (["trigger", verb], "NAME") if *verb != "create" => vec![Names::Triggers],
        (["cluster", ..], "CONTROLLER") => vec![Names::Controllers],
        (["dev", "kill" | "start"], _) => vec![Names::Controllers, Names::Nodes],
        (["context", "show" | "use" | "remove"], _) => vec![Names::Contexts],
        (["edit"], "KIND") => vec![Names::Words(KINDS_TO_EDIT)],
        (["label"], "KIND") => vec![Names::Words(KINDS_TO_LABEL)],
        (["get" | "describe" | "delete" | "wait"], "KIND") => vec![Names::Words(KINDS)],
        (["get" | "describe" | "delete" | "edit" | "wait"], "NAME") => {
            let names = of_kind(line.given.first()?)?;
            let versions = line.path == ["delete"] && names == Names::Agents;
            vec![if versions { Names::Versions } else { names }]
        }
        _ => return None,
    })
}

fn of_kind(kind: &str) -> Option<Names> {
    match kind.strip_suffix('s').unwrap_or(kind) {
        "job" => Some(Names::Jobs),
        "agent" => Some(Names::Agents),
        "node" => Some(Names::Nodes),
        "controller" => Some(Names::Controllers),
        "model" => Some(Names::Models),
        "skill" => Some(Names::Skills),
        "chain" => Some(Names::Chains),
        "secret" => Some(Names::Secrets),
        "trigger" => Some(Names::Triggers),
        "question" => Some(Names::Questions),
        "orchestrator" => Some(Names::Objects("orchestrator")),
        "policy" => Some(Names::Objects("policy")),
        "context" => Some(Names::Contexts),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::arguments::Arguments;

    fn place(line: &str) -> Option<CompletionContext> {
        let mut root = Arguments::command();
        root.build();
        // The last word is what is being typed.
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        CompletionContext::of(&root, &words)
    }

    #[test]
    fn a_place_in_a_line_has_names() {
        let names = |line: &str| place(line).map(|place| place.names);
        for (line, wanted) in [
            ("job show ", Names::Jobs),
            ("job show job-1 job-", Names::Jobs),
            ("job show -o json job/", Names::Jobs),
            ("-o json job --server x:1 cancel ", Names::Jobs),
            ("explain ", Names::Jobs),
            ("agent show he", Names::Agents),
            ("chain show gr", Names::Chains),
            ("question answer que", Names::Questions),
            ("chain check gr", Names::Chains),
            ("auth token revoke ", Names::Objects("token")),
            ("auth oidc remove ", Names::Objects("issuer")),
            ("mcp test se", Names::Objects("mcp-server")),
            ("model login ", Names::Models),
            ("graph history job-", Names::Jobs),
            ("graph run br", Names::Agents),
            ("chain show chain/gr", Names::Chains),
            ("job list --agent ", Names::Agents),
            ("agent retire hello@", Names::Versions),
            ("agent retire agent/hello@", Names::Versions),
            ("node drain ", Names::Nodes),
            ("node label ", Names::Nodes),
            ("cluster remove ", Names::Controllers),
            ("audit query --member ", Names::Controllers),
            ("context use ", Names::Contexts),
            ("job list --context ", Names::Contexts),
            ("get nodes ", Names::Nodes),
            ("get node/", Names::Nodes),
            ("delete agent ", Names::Versions),
            ("edit ", Names::Words(KINDS_TO_EDIT)),
        ] {
            assert_eq!(names(line), Some(vec![wanted]), "{line}");
        }
        for line in [
            "",
            "job ",
            "job show -",
            "job list ",
            "run hello ",
            "node label w1 ",
            "job show node/",
            "context add ",
            "-o ",
        ] {
            assert_eq!(names(line), None, "{line}");
        }
    }

    #[test]
    fn agents_and_chains_can_be_run() {
        assert_eq!(place("run he").map(|place| place.names), Some(vec![Names::Agents, Names::Chains]));
    }

    #[test]
    fn the_line_says_which_cluster() {
        let found = place("--server=a:1 job --context there show ").expect("a place");
        assert_eq!(found.cluster, ["--server=a:1", "--context=there"]);
    }

    #[test]
    fn names_go_on_from_what_is_there() {
        let fitting = |line: &str| {
            let names = ["w2", "w1", "w1", "laptop", "w 3"].map(str::to_owned).to_vec();
            place(line).expect("a place").fitting(names)
        };
        assert_eq!(fitting("node show w"), ["w1", "w2"]);
        assert_eq!(fitting("node show node/w"), ["node/w1", "node/w2"]);
        assert_eq!(fitting("get nodes/l"), ["nodes/laptop"]);
    }

    #[test]
    fn every_argument_that_is_a_name_is_completed() {
        let mut root = Arguments::command();
        root.build();
        let mut left = Vec::new();
        let mut commands = vec![(&root, String::new())];
        while let Some((command, path)) = commands.pop() {
            let named = |argument: &&Arg| {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                let words: Vec<&str> = help.split(|c: char| !c.is_ascii_alphanumeric()).collect();
                ["id", "ids", "name", "names", "Name", "Names", "NAME"].iter().any(|word| words.contains(word))
            };
            if command.get_positionals().any(|argument| named(&argument)) && !path.contains("dev-member") {
                let both = [path.clone(), format!("{path}node ")];
                if both.iter().all(|line| place(line).is_none()) {
                    left.push(path.trim().to_owned());
                }
            }
            commands.extend(command.get_subcommands().map(|child| (child, format!("{path}{} ", child.get_name()))));
        }
        left.sort();
        let known = [
            "__complete",
            "agent search",
            "auth oidc set",
            "auth token create",
            "context add",
            "deploy",
            "docs",
            "init",
            "mcp add",
            "model add",
            "model prices",
            "operator secret",
            "peer add",
            "peer remove",
            "rag import",
            "step",
            "test",
            "trigger create",
            "types",
        ];
        assert_eq!(left, known);
    }
}
