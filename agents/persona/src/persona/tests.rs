use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

fn prompt(file: &str, question: &str) -> String {
    let persona = Persona::parse("p", file).expect("valid");
    let values = BTreeMap::from([("__os__".to_owned(), "linux".to_owned())]);
    let prompt = persona.prompt(question, &values);
    let mut shown: Vec<String> = prompt.system.iter().map(|text| format!("system: {text:?}")).collect();
    shown.extend(prompt.messages.iter().map(|(speaker, text)| format!("{speaker:?}: {text:?}")));
    shown.join("\n")
}

fn check(file: &str, question: &str, expected: &Expect) {
    expected.assert_eq(&prompt(file, question));
}

#[test]
fn the_form_follows_from_the_text() {
    check("", "q", &expect![[r#"User: "q""#]]);
    check("---\nmodel: m\n---\n", "q", &expect![[r#"User: "q""#]]);
    check(
        "Be brief on {{__os__}}, {{__tools__}}.",
        "q {{__os__}}",
        &expect![[r#"
        system: "Be brief on linux, {{__tools__}}."
        User: "q {{__os__}}""#]],
    );
    check("Translate __INPUT__ on {{__os__}}", "{{__os__}}", &expect![[r#"User: "Translate {{__os__}} on linux""#]]);
    check(
        "Convert.\n### INPUT:\n1 km\n### OUTPUT:\n1000 m\n\n### INPUT: 2 km\n### OUTPUT: 2000 m",
        "3 km",
        &expect![[r#"
            system: "Convert."
            User: "1 km"
            Assistant: "1000 m"
            User: "2 km"
            Assistant: "2000 m"
            User: "3 km""#]],
    );
}

#[test]
fn marks_without_a_partner_are_text() {
    for text in
        ["a\n### INPUT:\nb", "a\n### OUTPUT:\nb\n### INPUT:\nc", "a\n### INPUT:\nb\n### INPUT:\nc\n### OUTPUT:\nd"]
    {
        let persona = Persona::parse("p", text).expect("valid");
        let prompt = persona.prompt("q", &BTreeMap::new());
        assert_eq!((prompt.system.as_deref(), prompt.messages.len()), (Some(text), 1));
    }
}

#[test]
fn settings_are_at_the_start_of_the_file() {
    let file = "---\nname: other\nmodel: openai:gpt\ntemperature: 0.2\nenabled_tools: fs, web\nenabled_mcp_servers: [a, b]\n\
                auto_continue: true\nmax_auto_continues: 5\ntop_p:\nextra: 1\n-----\nText\n";
    let persona = Persona::parse("p", file).expect("valid");
    assert_eq!((persona.name.as_str(), persona.model.as_deref()), ("p", Some("openai:gpt")));
    assert_eq!((persona.temperature, persona.top_p, persona.text.as_str()), (Some(0.2), None, "Text"));
    assert_eq!(persona.enabled_tools, Some(vec!["fs".to_owned(), "web".to_owned()]));
    assert_eq!(persona.enabled_mcp_servers, Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!((persona.auto_continue, persona.max_auto_continues), (Some(true), Some(5)));
    assert_eq!(persona.unknown, [("extra".to_owned(), FilePlace { line: 10, column: 1 })]);

    let rules = "Text above\n---\nmodel: x\n---\nText below";
    assert_eq!(Persona::parse("p", rules).expect("valid").text, rules, "rules within a text are no settings");
    assert_eq!(Persona::parse("p", "---\nno end").expect("valid").text, "---\nno end");
    assert_eq!(Persona::parse("p", "\u{feff}---\r\nmodel: m\r\n---\r\nx").expect("valid").model.as_deref(), Some("m"));
    assert_eq!(Persona::parse("p", "---\nprompt: a\n---\n").expect("valid").text, "a");
    assert_eq!(Persona::parse("p", "---\nprompt: a\n---\nb").expect("valid").text, "b");
}

#[test]
fn settings_are_refused_with_a_place() {
    for (file, problem) in [
        ("---\na rule\n---\n", "line 2, column 1: what is between the lines of dashes"),
        ("---\nmodel: m\ntemperature: hot\n---\n", "line 3, column 14: \"temperature\" is a number"),
        ("---\nauto_continue: 1\n---\n", "line 2, column 16: \"auto_continue\" is true or false"),
        ("---\nmodel: [m]\n---\n", "line 2, column 8: \"model\" is a text"),
        ("---\nmax_auto_continues: -1\n---\n", "line 2, column 21: \"max_auto_continues\" is a count"),
        ("---\nmodel: \"m\n---\n", "line "),
    ] {
        let error = Persona::parse("p", file).expect_err(file).to_string();
        assert!(error.starts_with(problem), "{error}");
    }
    assert!(Persona::parse("p", &"x".repeat(2 << 20)).expect_err("long").to_string().contains("at most 1024 KiB"));
}

proptest! {
    #[test]
    fn any_file_is_read_or_refused(file in "(---\n|model: |### INPUT:|### OUTPUT:|__INPUT__|\\{\\{__os__\\}\\}|[a:\n\\-\\[é]){0,30}") {
        if let Ok(persona) = Persona::parse("p", &file) {
            let prompt = persona.prompt("question", &BTreeMap::new());
            prop_assert!(prompt.messages.last().is_some_and(|(speaker, text)| *speaker == Speaker::User && text.contains("question")));
        }
    }
}
