//! Contracts: every key with valid and invalid values, corner cases of the dialect, and texts that would expand too far.

use crate::write::{Cases, Kind};

/// A contract that uses most keys.
const WHOLE: &str = "\
agent:
  name: whole
  version: 1.2.3
  type: agent
  description: 'says: #hello'
  capabilities: [a, b, \"c d\"]
  input: {schema: {type: object, properties: {x: {type: string}}, required: [x]}}
  output:
    schema: &out
      type: object
  model: {preference: fast, override_allowed: no}
  requires:
    skills: [s]
    memory: off
    knowledge: {read_domains: [d]}
    agents: [other, {name: more, version: ^1.0.0}]
  provider: {type: exec, command: [cat]}
  hardware: {gpu: false, min_memory_gb: 1, architecture: any}
  retry: {max_retries: '3', backoff_base: 1.5}
  permissions: {network: [], max_memory_mb: 0x80}
  execution_timeout: 1:30
  labels: {team: x}
";

/// Lines below `agent:` that hold.
const GOOD: &[(&str, &str)] = &[
    ("description-empty", "description: ''"),
    ("capabilities-empty", "capabilities: []"),
    ("schema-empty", "input: {schema: {}}"),
    ("unknown-key", "descripton: x"),
    ("unknown-deep-key", "model: {preferense: fast}"),
    ("lifecycle", "lifecycle: {anything: [1, 2]}"),
    ("provider-word", "provider: exec"),
    ("knowledge-true", "requires: {knowledge: yes}"),
    ("knowledge-null", "requires: {knowledge: ~}"),
    ("knowledge-empty", "requires: {knowledge: {}}"),
    ("agents", "requires: {agents: [a, {name: b}, {name: c, version: ~1.2.0}]}"),
    ("float-that-is-whole", "hardware: {min_memory_gb: 2.0}"),
    ("octal", "hardware: {min_cpu_cores: 010}"),
    ("vram", "hardware: {gpu: true, gpu_vram_gb: 16, gpu_count: 2}"),
    ("timeout-text", "execution_timeout: '12.5'"),
    ("timeout-clock", "execution_timeout: 1:30"),
    ("retries-boolean", "retry: {max_retries: yes}"),
    ("retries-fraction", "retry: {max_retries: 2.9}"),
    ("permissions-empty", "permissions: ~"),
    ("aliases", "permissions: {file_system: [read]}\n  requires: {secrets: [K]}"),
    ("effects", "effects: once\n  max_attempts: 1\n  concurrency: 3"),
    ("packages", "dependencies: {packages: [requests], other: 1}"),
    ("merge", "model: {<<: {preference: fast}, override_allowed: true}"),
    ("duplicate-key", "description: a\n  description: b"),
    ("folded-text", "description: >\n    one\n    two"),
    ("unicode", "description: \"\\u00e9 \u{1F600} \u{5d0}\""),
    ("comment-at-end", "description: x # and more"),
    ("anchor-unused", "description: &a x"),
];

/// Lines below `agent:` that break a rule.
const BAD: &[(&str, &str)] = &[
    ("type-unknown", "type: robot"),
    ("description-null", "description:"),
    ("description-number", "description: 5"),
    ("capabilities-text", "capabilities: a"),
    ("capabilities-numbers", "capabilities: [1]"),
    ("schema-list", "input: {schema: []}"),
    ("schema-text", "output: {schema: object}"),
    ("preference", "model: {preference: smart}"),
    ("override", "model: {override_allowed: 1}"),
    ("platform-tools", "requires: {platform_tools: 'yes'}"),
    ("skills", "requires: {skills: {a: b}}"),
    ("knowledge", "requires: {knowledge: [a]}"),
    ("agents-number", "requires: {agents: [5]}"),
    ("agents-nameless", "requires: {agents: [{version: '*'}]}"),
    ("agents-range", "requires: {agents: [{name: a, version: 'not one'}]}"),
    ("provider", "provider: docker"),
    ("provider-command", "provider: {type: exec, command: 'cat'}"),
    ("iterations", "provider: {max_iterations: 0}"),
    ("hardware-key", "hardware: {gpus: 1}"),
    ("hardware-float", "hardware: {min_memory_gb: 1.5}"),
    ("hardware-negative", "hardware: {gpu_vram_gb: -1}"),
    ("hardware-zero", "hardware: {min_cpu_cores: 0}"),
    ("hardware-text", "hardware: {gpu: 'on'}"),
    ("architecture", "hardware: {architecture: riscv}"),
    ("affinity", "hardware: {node_affinity: '../x'}"),
    ("retries-text", "retry: {max_retries: many}"),
    ("backoff", "retry: {backoff_base: []}"),
    ("timeout-text", "execution_timeout: soon"),
    ("timeout-nan", "execution_timeout: .nan"),
    ("timeout-date", "execution_timeout: 2024-01-02"),
    ("isolation", "permissions: {isolation: vm}"),
    ("permissions-list", "permissions: [a]"),
    ("effects", "effects: twice"),
    ("attempts", "max_attempts: 4"),
    ("concurrency", "concurrency: 0"),
    ("labels", "labels: {a: 1}"),
    ("schema-type", "input: {schema: {type: strin}}"),
    ("schema-remote", "input: {schema: {$ref: 'http://localhost/x'}}"),
];

/// Whole texts that are no contract.
const NONE: &[(&str, &str)] = &[
    ("empty", ""),
    ("blank", "   \n\n"),
    ("comment", "# nothing"),
    ("null", "~"),
    ("list", "- a\n- b"),
    ("text", "agent"),
    ("number", "5"),
    ("date", "2024-01-02"),
    ("agent-list", "agent: []"),
    ("agent-null", "agent:"),
    ("no-name", "agent: {version: 1.0.0}"),
    ("no-version", "agent: {name: a}"),
    ("version-float", "agent: {name: a, version: 1.0}"),
    ("version-prefix", "agent: {name: a, version: v1.0.0}"),
    ("version-pre-release", "agent: {name: a, version: 1.0.0-rc1}"),
    ("version-huge", "agent: {name: a, version: 99999999999999999999.0.0}"),
    ("version-date", "agent: {name: a, version: 2024-01-02}"),
    ("name-empty", "agent: {name: '', version: 1.0.0}"),
    ("name-number", "agent: {name: 5, version: 1.0.0}"),
    ("name-path", "agent: {name: ../x, version: 1.0.0}"),
    ("name-dots", "agent: {name: a/../b, version: 1.0.0}"),
    ("name-control", "agent: {name: \"a\\nb\", version: 1.0.0}"),
    ("name-nul", "agent: {name: \"a\\0b\", version: 1.0.0}"),
    ("tab-indent", "agent:\n\tname: a"),
    ("unclosed", "agent: {name: a"),
    ("unclosed-quote", "agent: {name: 'a"),
    ("two-documents", "agent: {name: a, version: 1.0.0}\n---\nagent: {}"),
    ("tag", "agent: !!python/object/apply:os.system [id]"),
    ("own-tag", "agent: !mine {name: a, version: 1.0.0}"),
    ("unknown-alias", "agent: *nobody"),
    ("alias-of-itself", "agent: &a {name: *a}"),
    ("no-date", "agent: {name: 2024-02-30, version: 1.0.0}"),
    ("merge-number", "agent: {<<: 5, name: a, version: 1.0.0}"),
    ("key-list", "agent: {[a]: b, name: a, version: 1.0.0}"),
    ("colon-twice", "agent: name: a"),
    ("binary", "agent: {name: !!binary aGk=, version: 1.0.0}"),
    ("name-long", "LONG"),
];

pub(crate) fn cases() -> Cases {
    let mut cases = Cases::of(Kind::Yaml);
    cases.accepted("whole", WHOLE);
    cases.accepted("flat", "name: flat\nversion: 1.0.0\n");
    cases.accepted("json", r#"{"agent": {"name": "j", "version": "1.0.0"}}"#);
    cases.accepted("byte-order-mark", "\u{feff}agent: {name: bom, version: 1.0.0}");
    cases.accepted("carriage-returns", "agent:\r\n  name: cr\r\n  version: 1.0.0\r\n");
    let with = |line: &str| format!("agent:\n  name: lines\n  version: 1.0.0\n  {line}\n");
    GOOD.iter().for_each(|(what, line)| cases.accepted(what, with(line)));
    BAD.iter().for_each(|(what, line)| cases.refused(what, with(line)));
    for (what, text) in NONE {
        let text = text.replace("LONG", &format!("agent: {{name: {}, version: 1.0.0}}", "n".repeat(300)));
        cases.refused(what, text);
    }
    cases.refused("not-utf-8", b"agent: {name: \"\xff\", version: 1.0.0}".as_slice());
    cases.refused("utf-16", "a\0g\0e\0n\0t\0".as_bytes());
    bombs(&mut cases);
    cases.broken("broken", WHOLE.as_bytes(), 40);
    cases
}

fn bombs(cases: &mut Cases) {
    let nine = |name: char| vec![format!("*{name}"); 9].join(",");
    let chain = |first: &str, then: &dyn Fn(char) -> String| {
        let mut text = format!("a: &a {first}\n");
        for (before, name) in ('a'..='i').zip('b'..='j') {
            text.push_str(&format!("{name}: &{name} {}\n", then(before)));
        }
        text
    };
    cases.refused("bomb-of-lists", chain("[1,2,3]", &|before| format!("[{}]", nine(before))));
    cases.refused("bomb-of-merges", chain("{k: 1}", &|before| format!("{{<<: [{}]}}", nine(before))));
    cases.refused("bomb-of-levels", chain("[1]", &|before| format!("[[[[[[[[[[*{before}]]]]]]]]]]")));
    let copies = vec!["*a"; 1_000].join(",");
    cases.refused("bomb-of-text", format!("a: &a {}\nb: [{copies}]", "x".repeat(100_000)));
    cases.refused("deep-lists", "[".repeat(50_000));
    cases.refused("deep-maps", "{a: ".repeat(50_000));
    cases.refused("deep-keys", "? ".repeat(50_000));
    cases.refused("deep-items", "- ".repeat(50_000));
    cases.refused("too-long", "x".repeat(2 << 20));
    cases.refused("many-dates", format!("[{}]", vec!["2024-01-01"; 90_000].join(",")));
    cases.refused("many-anchors", (0..20_000).map(|n| format!("- &a{n} x\n")).collect::<String>());
    let long = "k".repeat(200_000);
    cases.refused("long-key", format!("agent: {{name: long, version: 1.0.0, {long}: 1}}"));
    let many: String = (0..3_000).map(|n| format!("  k{n}: v\n")).collect();
    cases.accepted("many-keys", format!("agent:\n  name: many\n  version: 1.0.0\n{many}"));
}
