use proptest::prelude::*;

use super::*;

const REVIEW: &str = "\
variables:
  - name: file
  - name: style
    default: short
  - name: words
    default: 0
    rest: true
steps:
  - .file {{file}} -- {{style}} {{words}}
  - .exit role
";

fn args(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn named(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn steps(arguments: &[&str], names: &[(&str, &str)]) -> Result<Vec<String>, String> {
    let found = Macro::parse(REVIEW).expect("valid");
    found.steps("review", &args(arguments), &named(names)).map_err(|error| error.to_string())
}

#[test]
fn arguments_fill_variables_in_order() {
    assert_eq!(steps(&["a"], &[]), Ok(args(&[".file a -- short 0", ".exit role"])));
    assert_eq!(steps(&["a", "long", "x", "y z"], &[]), Ok(args(&[".file a -- long x y z", ".exit role"])));
    assert_eq!(steps(&[], &[("file", "b"), ("words", "w")]), Ok(args(&[".file b -- short w", ".exit role"])));
    assert_eq!(Macro::parse(REVIEW).expect("valid").usage("review"), "review <file> [style] [words]...");
}

#[test]
fn values_stay_one_line_and_are_not_replaced_again() {
    assert_eq!(steps(&["{{style}}\n.exit"], &[]), Ok(args(&[".file {{style}} .exit -- short 0", ".exit role"])));
}

#[test]
fn calls_that_do_not_fit_are_refused_with_the_usage() {
    let usage = "; usage: review <file> [style] [words]...";
    for (arguments, names, problem) in [
        (&[][..], &[][..], "the macro needs a value for \"file\""),
        (&["a"], &[("x", "1")], "the macro has no variable \"x\""),
        (&["a"], &[("file", "b")], "\"file\" has two values: give it by its name or by its place"),
    ] {
        assert_eq!(steps(arguments, names), Err(format!("{problem}{usage}")));
    }
    let one = Macro::parse("steps: [a]\n").expect("valid");
    assert_eq!(
        one.steps("one", &args(&["x"]), &BTreeMap::new()).map_err(|error| error.to_string()),
        Err("the macro takes at most 0 arguments, and there are 1; usage: one".to_owned())
    );
}

#[test]
fn steps_that_grow_too_long_are_refused() {
    let found =
        Macro::parse(&format!("variables: [{{name: a}}]\nsteps: [\"{}\"]", "{{a}}".repeat(100))).expect("valid");
    let error = found.steps("m", &["x".repeat(20_000)], &BTreeMap::new()).expect_err("too long");
    assert_eq!(error.to_string(), "step 1 has more than 1048576 bytes with its values: pass less text");
}

#[test]
fn macros_nest_eight_deep() {
    assert_eq!((1..NESTING_MAX).try_fold(1, |depth, _| nested(depth)), Ok(8));
    assert_eq!(nested(8), Err(MacroError::TooDeep));
}

#[test]
fn files_are_refused_with_a_place() {
    for (text, problem) in [
        ("", "line 1, column 1: a macro is a mapping, with a \"name: value\" on each line"),
        ("variables: []\n", "line 1, column 1: \"steps\" is missing: list the lines to run"),
        ("steps: []\n", "line 1, column 8: \"steps\" has 1 to 1000 lines"),
        ("steps:\n- a\n- |\n  b\n  c\n", "line 4, column 3: a step is one line: write one list item a line"),
        ("steps: [a]\nstep: 1\n", "line 2, column 1: a macro has \"steps\" and \"variables\", and no \"step\""),
        ("steps: [a]\nsteps: [b]\n", "line 2, column 1: \"steps\" is there twice: remove one"),
        (
            "steps: [a]\nvariables:\n- name: a b\n",
            "line 3, column 9: a name has 1 to 64 letters of a-z, A-Z, 0-9, \"_\" and \"-\"",
        ),
        ("steps: [a]\nvariables:\n- default: 1\n", "line 3, column 3: the variable has no \"name\""),
        (
            "steps: [a]\nvariables: [{name: x}, {name: x}]\n",
            "line 2, column 24: there are two variables \"x\": rename one",
        ),
        (
            "steps: [a]\nvariables:\n- {name: x, rest: true}\n- {name: y}\n",
            "line 3, column 3: \"x\" takes the rest of the arguments: move it to the end",
        ),
        ("steps: [a]\nvariables:\n- {name: x, rest: maybe}\n", "line 3, column 19: \"rest\" is true or false"),
        ("steps: [&a b]\n", "line 1, column 12: anchors are not supported: write the value where it is used"),
        ("steps: [a]\n---\nsteps: [b]\n", "line 2, column 1: there is a second document: remove it"),
    ] {
        assert_eq!(Macro::parse(text).expect_err(text).to_string(), problem, "{text:?}");
    }
    let deep = format!("steps: {}{}", "[".repeat(20), "]".repeat(20));
    assert!(Macro::parse(&deep).expect_err("deep").to_string().contains("nested at most 8 deep"));
    assert!(Macro::parse(&"#".repeat(300 << 10)).expect_err("long").to_string().contains("at most 256 KiB"));
    assert!(Macro::parse("steps: [a\n").is_err());
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(steps|variables|name|[:\\[\\]{}\\-&*!|>\"' \n#a]){0,40}") {
        let _ = Macro::parse(&text);
    }
}
