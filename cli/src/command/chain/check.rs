//! `atlasctl chain check`: how the steps of a chain fit together.

use std::path::Path;

use atlas_contract::Warning;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{KIND, definition};
use crate::answers;
use crate::client::Client;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;

/// Options of `atlasctl chain check`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// A YAML file with a definition, or the name of a stored chain.
    #[arg(value_name = "FILE|NAME")]
    chain: String,
    /// Refuse a chain that needs a model to connect its steps.
    #[arg(long)]
    no_bridge: bool,
}

/// The answer of the controllers about a chain.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Checked {
    pub(super) name: String,
    pub(super) steps: Vec<Step>,
    pub(super) joins: Vec<Join>,
    /// What is wrong with the maps of steps.
    pub(super) problems: Vec<Problem>,
    /// The model that converts data; empty if there is none.
    pub(super) model: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Step {
    pub(super) agent: String,
    pub(super) version: String,
    /// Conditions, retries and limits, in words.
    pub(super) when: String,
    /// The steps that it comes after; none in a chain without branches.
    pub(super) after: Option<Vec<usize>>,
}

/// What is wrong with the `input_map` of a step.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Problem {
    /// From 0; people count from 1.
    step: usize,
    field: String,
    given: Value,
    message: String,
    hint: Option<String>,
    level: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Join {
    strategy: String,
    cost: f64,
    fields: Vec<Field>,
    notes: Vec<String>,
    /// In a chain with branches, the steps that give the input, and the one that gets it.
    from: Vec<usize>,
    to: Option<usize>,
}

/// A field of the input that gets a value.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Field {
    target: String,
    source: Value,
    how: String,
    from: Option<String>,
    to: String,
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let path = Path::new(&options.chain);
    for warning in if definition::is_definition(path) { definition::unknown(path)? } else { Vec::new() } {
        context.note(&format!("warning: {warning}"));
    }
    let (value, checked) = ask(&context.client()?, &options.chain).await?;
    context.show(&Shown { value, text: lines(&checked), names: vec![format!("{KIND}/{}", checked.name)] })?;
    refusal(&checked, options.no_bridge).map_or(Ok(()), Err)?;
    context.note(match checked.joins.iter().any(Join::is_bridge) {
        true => "ok: a model connects some steps; its answers differ from run to run",
        false => "ok: no model is needed to connect the steps",
    });
    Ok(Exit::Done)
}

/// Asks the controllers about a chain in a file, or a stored one.
pub(super) async fn ask(client: &Client, chain: &str) -> Result<(Value, Checked), Failure> {
    let body = json!({"chain": definition::chain(chain)?});
    let value = client.post(&["api", "chains", "check"], &[], &body).await?;
    let checked = answers::read(&value)?;
    Ok((value, checked))
}

/// What is wrong with the chain in a file that is being stored: its agents may come later, so nothing of it is an error.
pub(crate) async fn warnings(client: &Client, path: &Path) -> Result<Vec<Warning>, Failure> {
    let mut warnings = definition::unknown(path)?;
    let file = path.display().to_string();
    match ask(client, &file).await {
        Ok((_, checked)) => {
            warnings.extend(checked.problems.iter().map(|problem| problem.warning().in_file(&file)));
            let cannot = refusal(&Checked { problems: Vec::new(), ..checked }, false);
            warnings.extend(cannot.map(|failure| Warning::new(&file, failure.message)));
        }
        Err(failure) if failure.exit == Exit::Unreachable => return Err(failure),
        Err(failure) => warnings.push(Warning::new(&file, format!("it cannot run yet: {}", failure.message))),
    }
    Ok(warnings)
}

/// The failure for the first pair of steps that does not fit together, or the first map that can never work.
fn refusal(checked: &Checked, no_bridge: bool) -> Option<Failure> {
    let found = |wanted: fn(&Join) -> bool| checked.joins.iter().position(wanted);
    let refused = |join: usize, why: &str| {
        let (from, to) = checked.joins[join].place(join);
        let message = format!("step {to} cannot get its input from step {from}: {why}");
        let failure = Failure::new("E1124", Exit::Invalid, message);
        failure.with_next("give the step an input_map: atlasctl docs chains")
    };
    if let Some(problem) = checked.problems.iter().find(|problem| problem.level == "error") {
        let Warning { path, message, hint } = problem.warning();
        let agent = checked.steps.get(problem.step).map_or("", |step| &step.agent);
        let message = format!("step {} ({agent}) can never run: {path}: {message}", problem.step + 1);
        let failure = Failure::new("E1124", Exit::Invalid, message);
        return Some(failure.with_next(hint.unwrap_or_else(|| "paths and maps: atlasctl docs chains".to_owned())));
    }
    if let Some(join) = found(|join| join.strategy.is_empty()) {
        return Some(refused(join, "the schemas are incompatible"));
    }
    let bridged = found(Join::is_bridge)?;
    match (no_bridge, checked.model.is_empty()) {
        (true, _) => Some(refused(bridged, "only a model could convert the output")),
        (false, true) => Some(refused(bridged, "only a model could convert the output, and the tier fast has none")),
        (false, false) => None,
    }
}

/// One line per step, and between two steps how the second gets its input.
fn lines(checked: &Checked) -> String {
    let mut text = String::new();
    for (index, step) in checked.steps.iter().enumerate() {
        for (join, from) in joins_to(checked, index) {
            let place = format!("{from}→{}", index + 1);
            text += &format!("   {place}  {:<10} cost {}   {}\n", join.word(), join.cost, join.about(&checked.model));
        }
        text += format!("step {}  {} {}  {}", index + 1, step.agent, step.version, step.when).trim_end();
        text.push('\n');
        for problem in checked.problems.iter().filter(|problem| problem.step == index) {
            text += &format!("   {:<7}  {}\n", problem.level, problem.warning());
        }
    }
    text
}

/// How a step gets its input, with the steps from which it does.
pub(super) fn joins_to(checked: &Checked, index: usize) -> Vec<(&Join, String)> {
    let places = checked.joins.iter().enumerate().map(|(position, join)| (join, join.place(position)));
    places.filter(|(_, (_, to))| *to == index + 1).map(|(join, (from, _))| (join, from)).collect()
}

impl Problem {
    /// With the place in the definition, whose lists count from 0.
    fn warning(&self) -> Warning {
        let path = match self.field.as_str() {
            "" => format!("/steps/{}/input_map", self.step),
            field => format!("/steps/{}/input_map/{field}", self.step),
        };
        let message = match &self.given {
            Value::Null | Value::Object(_) => self.message.clone(),
            given => format!("{given}: {}", self.message),
        };
        Warning { path, message, hint: self.hint.clone() }
    }
}

impl Join {
    fn is_bridge(&self) -> bool {
        self.strategy == "llm_bridge"
    }

    /// The numbers of the steps, from 1: those before and the one after. Without branches each step comes after the one before.
    fn place(&self, position: usize) -> (String, usize) {
        match self.to {
            None => ((position + 1).to_string(), position + 2),
            Some(to) => {
                let from: Vec<String> = self.from.iter().map(|step| (step + 1).to_string()).collect();
                (from.join("+"), to + 1)
            }
        }
    }

    /// The strategy in one word.
    pub(super) fn word(&self) -> &str {
        match self.strategy.as_str() {
            "" => "impossible",
            "llm_bridge" => "bridge",
            other => other,
        }
    }

    /// The fields, or why there are none.
    pub(super) fn about(&self, model: &str) -> String {
        match self.strategy.as_str() {
            "" => self.notes.join("; "),
            "llm_bridge" if model.is_empty() => "there is no model for it".to_owned(),
            "llm_bridge" => format!("model {model}, not deterministic"),
            _ if self.fields.is_empty() => "all fields".to_owned(),
            _ => self.fields.iter().map(Field::about).collect::<Vec<_>>().join(", "),
        }
    }
}

impl Field {
    /// `summary → name (string → string)`
    fn about(&self) -> String {
        let source = match &self.source {
            Value::String(name) if self.how != "value" => name.clone(),
            value => value.to_string(),
        };
        let source = if self.how == "default" { format!("default {source}") } else { source };
        let target = &self.target;
        match &self.from {
            Some(from) if source == *target && *from == self.to => format!("{target} ({from})"),
            Some(from) => format!("{source} → {target} ({from} → {})", self.to),
            None => format!("{source} → {target}"),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use expect_test::expect;

    use super::*;

    pub(in super::super) fn checked(joins: usize) -> Checked {
        let field = |target: &str, source: Value, how: &str, from: Option<&str>| Field {
            target: target.to_owned(),
            source,
            how: how.to_owned(),
            from: from.map(str::to_owned),
            to: "string".to_owned(),
        };
        let all = [
            ("direct", 0.0, vec![field("text", json!("text"), "field", Some("string"))]),
            (
                "mapped",
                0.0,
                vec![
                    field("name", json!("summary"), "field", Some("string")),
                    field("size", json!(3), "value", None),
                    field("style", json!("bold"), "value", None),
                    field("title", json!("$.trigger.title"), "path", None),
                ],
            ),
            (
                "coerce",
                0.0,
                vec![
                    field("name", json!("full_name"), "field", Some("integer")),
                    field("size", json!(3), "default", None),
                ],
            ),
            ("llm_bridge", 1.0, Vec::new()),
            ("", 0.0, Vec::new()),
        ];
        let notes = vec!["No viable transformation path found".to_owned()];
        let join = |(strategy, cost, fields): (&str, f64, Vec<Field>)| Join {
            strategy: strategy.to_owned(),
            cost,
            fields,
            notes: notes.clone(),
            ..Join::default()
        };
        let names = ["a", "b", "c", "d", "e", "f"].into_iter().take(joins + 1);
        let step = |agent: &str| Step { agent: agent.to_owned(), version: "1.0.0".to_owned(), ..Step::default() };
        let joins = all.into_iter().take(joins).map(join).collect();
        let steps = names.map(step).collect();
        Checked { name: "c".to_owned(), steps, joins, problems: Vec::new(), model: "fast".to_owned() }
    }

    #[test]
    fn each_pair_of_steps_has_a_line() {
        expect![[r#"
            step 1  a 1.0.0
               1→2  direct     cost 0   text (string)
            step 2  b 1.0.0
               2→3  mapped     cost 0   summary → name (string → string), 3 → size, "bold" → style, $.trigger.title → title
            step 3  c 1.0.0
               3→4  coerce     cost 0   full_name → name (integer → string), default 3 → size
            step 4  d 1.0.0
               4→5  bridge     cost 1   model fast, not deterministic
            step 5  e 1.0.0
               5→6  impossible cost 0   No viable transformation path found
            step 6  f 1.0.0
        "#]].assert_eq(&lines(&checked(5)));
    }

    /// The second step may be left out; the last joins two branches.
    pub(in super::super) fn branched() -> Checked {
        let mut checked = checked(3);
        for (step, after) in checked.steps.iter_mut().zip([vec![], vec![0], vec![1], vec![0, 2]]) {
            step.after = Some(after);
        }
        checked.steps[1].when = "if output.n > 1, 2 retries".to_owned();
        let places = [(vec![0], 1), (vec![1], 2), (vec![0, 2], 3)];
        for (join, (from, to)) in checked.joins.iter_mut().zip(places) {
            (join.from, join.to) = (from, Some(to));
        }
        let around = Join { strategy: "direct".to_owned(), from: vec![0], to: Some(2), ..Join::default() };
        checked.joins.insert(2, around);
        checked
    }

    #[test]
    fn branches_have_the_numbers_of_their_steps() {
        expect![[r#"
            step 1  a 1.0.0
               1→2  direct     cost 0   text (string)
            step 2  b 1.0.0  if output.n > 1, 2 retries
               2→3  mapped     cost 0   summary → name (string → string), 3 → size, "bold" → style, $.trigger.title → title
               1→3  direct     cost 0   all fields
            step 3  c 1.0.0
               1+3→4  coerce     cost 0   full_name → name (integer → string), default 3 → size
            step 4  d 1.0.0
        "#]]
        .assert_eq(&lines(&branched()));
        let mut wrong = branched();
        wrong.joins[3].strategy = String::new();
        let told = refusal(&wrong, false).map(|failure| failure.message);
        assert_eq!(told.as_deref(), Some("step 4 cannot get its input from step 1+3: the schemas are incompatible"));
    }

    #[test]
    fn a_map_that_can_never_work_is_refused() {
        let problem = |level: &str, field: &str| Problem {
            step: 1,
            field: field.to_owned(),
            given: json!("$.txt"),
            message: "the data of the step before has no field \"txt\"".to_owned(),
            hint: Some("did you mean \"text\"?".to_owned()),
            level: level.to_owned(),
        };
        let mut chain = checked(1);
        chain.problems.push(problem("warning", "size"));
        assert_eq!(refusal(&chain, false), None);
        chain.problems.push(problem("error", "name"));
        expect![[r#"
            step 1  a 1.0.0
               1→2  direct     cost 0   text (string)
            step 2  b 1.0.0
               warning  /steps/1/input_map/size: "$.txt": the data of the step before has no field "txt"; did you mean "text"?
               error    /steps/1/input_map/name: "$.txt": the data of the step before has no field "txt"; did you mean "text"?
        "#]]
        .assert_eq(&lines(&chain));
        let failure = refusal(&chain, false).expect("refused");
        let told = "step 2 (b) can never run: /steps/1/input_map/name: \"$.txt\": the data of the step before has no field \"txt\"";
        assert_eq!((failure.message.as_str(), failure.next.as_deref()), (told, Some("did you mean \"text\"?")));
    }

    #[test]
    fn a_chain_that_does_not_fit_is_refused() {
        let told = |checked: &Checked, no_bridge| refusal(checked, no_bridge).map(|failure| failure.message);
        let without = |joins| Checked { model: String::new(), ..checked(joins) };
        assert_eq!(told(&checked(3), true), None);
        assert_eq!(told(&checked(4), false), None);
        let step = "step 5 cannot get its input from step 4: only a model could convert the output";
        assert_eq!(told(&checked(4), true).as_deref(), Some(step));
        assert_eq!(told(&without(4), false), Some(format!("{step}, and the tier fast has none")));
        let impossible = "step 6 cannot get its input from step 5: the schemas are incompatible";
        assert_eq!(told(&checked(5), true).as_deref(), Some(impossible));
    }
}
