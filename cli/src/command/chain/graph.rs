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
    let mut text = String::new();
    for (index, step) in checked.steps.iter().enumerate() {
        if let Some(join) = index.checked_sub(1).and_then(|join| checked.joins.get(join)) {
            text += &format!(" │ {}: {}\n ▼\n", join.word(), join.about(&checked.model));
        }
        text += &format!("{} {}\n", step.agent, step.version);
    }
    text
}

fn mermaid(checked: &Checked) -> String {
    let mut text = "flowchart LR\n".to_owned();
    for (index, step) in checked.steps.iter().enumerate() {
        // A quote would end the text of the node.
        text += &format!("  s{}[\"{} {}\"]\n", index + 1, step.agent.replace('"', "#quot;"), step.version);
    }
    for (index, join) in checked.joins.iter().enumerate() {
        text += &format!("  s{} -- {} --> s{}\n", index + 1, join.word(), index + 2);
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::command::chain::check::tests::checked;

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
