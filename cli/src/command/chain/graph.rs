//! `atlasctl chain graph`: a drawing of the steps, for a terminal or as a Mermaid diagram.

use super::{KIND, check};
use crate::command::chain::check::Checked;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;

/// Options of `atlasctl chain graph`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// A YAML file with a definition, or the name of a stored chain.
    #[arg(value_name = "FILE|NAME")]
    chain: String,
    /// Print a Mermaid diagram.
    #[arg(long)]
    mermaid: bool,
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let (value, checked) = check::ask(&context.client()?, &options.chain).await?;
    let text = if options.mermaid { mermaid(&checked) } else { text(&checked) };
    context.show(&Shown { value, text, names: vec![format!("{KIND}/{}", checked.name)] })?;
    Ok(Exit::Done)
}

/// The steps from top to bottom.
fn text(checked: &Checked) -> String {
    if checked.steps.iter().any(|step| step.after.is_some()) {
        return branches(checked);
    }
    let mut text = String::new();
    for (index, step) in checked.steps.iter().enumerate() {
        if let Some(join) = index.checked_sub(1).and_then(|join| checked.joins.get(join)) {
            text += &format!(" │ {}: {}\n ▼\n", join.word(), join.about(&checked.model));
        }
        text += &format!("{} {}\n", step.agent, step.version);
    }
    text
}

/// The steps with their numbers, and under each where its input comes from.
fn branches(checked: &Checked) -> String {
    let mut text = String::new();
    for (index, step) in checked.steps.iter().enumerate() {
        text += format!("{} {} {}  {}", index + 1, step.agent, step.version, step.when).trim_end();
        text.push('\n');
        for (join, from) in check::joins_to(checked, index) {
            text += &format!("   ◀ {from}  {}: {}\n", join.word(), join.about(&checked.model));
        }
    }
    text
}

fn mermaid(checked: &Checked) -> String {
    let mut text = "flowchart LR\n".to_owned();
    for (index, step) in checked.steps.iter().enumerate() {
        // A quote would end the text of the node.
        let quoted = |text: &str| text.replace('"', "#quot;");
        let when = if step.when.is_empty() { String::new() } else { format!("<br>{}", quoted(&step.when)) };
        text += &format!("  s{}[\"{} {}{when}\"]\n", index + 1, quoted(&step.agent), step.version);
    }
    for index in 0..checked.steps.len() {
        for (way, (join, from)) in check::joins_to(checked, index).into_iter().enumerate() {
            // Ways around steps that may not run are dotted.
            let (begin, end) = if way == 0 { ("--", "-->") } else { ("-.", ".->") };
            for from in from.split('+') {
                text += &format!("  s{from} {begin} {} {end} s{}\n", join.word(), index + 1);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::command::chain::check::tests::{branched, checked};

    #[test]
    fn branches_are_drawn_with_all_ways() {
        expect![[r#"
            1 a 1.0.0
            2 b 1.0.0  if output.n > 1, 2 retries
               ◀ 1  direct: text (string)
            3 c 1.0.0
               ◀ 2  mapped: summary → name (string → string), 3 → size, "bold" → style, $.trigger.title → title
               ◀ 1  direct: all fields
            4 d 1.0.0
               ◀ 1+3  coerce: full_name → name (integer → string), default 3 → size
            flowchart LR
              s1["a 1.0.0"]
              s2["b 1.0.0<br>if output.n > 1, 2 retries"]
              s3["c 1.0.0"]
              s4["d 1.0.0"]
              s1 -- direct --> s2
              s2 -- mapped --> s3
              s1 -. direct .-> s3
              s1 -- coerce --> s4
              s3 -- coerce --> s4
        "#]]
        .assert_eq(&(text(&branched()) + &mermaid(&branched())));
    }

    #[test]
    fn joins_stand_between_the_steps() {
        expect![[r#"
            a 1.0.0
             │ direct: text (string)
             ▼
            b 1.0.0
             │ mapped: summary → name (string → string), 3 → size, "bold" → style, $.trigger.title → title
             ▼
            c 1.0.0
        "#]]
        .assert_eq(&text(&checked(2)));
        expect![[r#"
            flowchart LR
              s1["a 1.0.0"]
              s2["b 1.0.0"]
              s3["c 1.0.0"]
              s4["d 1.0.0"]
              s5["e 1.0.0"]
              s6["f 1.0.0"]
              s1 -- direct --> s2
              s2 -- mapped --> s3
              s3 -- coerce --> s4
              s4 -- bridge --> s5
              s5 -- impossible --> s6
        "#]]
        .assert_eq(&mermaid(&checked(5)));
    }
}
