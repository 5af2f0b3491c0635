//! Tools in TypeScript.

use expect_test::expect;

use super::{check, check_agent};
use crate::Language::TypeScript;

#[test]
fn types_and_comments() {
    check(
        TypeScript,
        r#"
import fs from "fs";

/**
 * Does a thing.
 *
 *   Indented.
 * @param {string} a - the first
 * @param b? the second
 * @param c
 * @returns nothing
 */
export async function run(
  a: string, // a remark
  b: number, c: boolean[], d: Array<Array<number>>, e: "x" | 'y', f: "x" | null, g?: string, h: number = 3,
  i: number | undefined, j: null | undefined, k: number | string, l: (1 | 2)[], m: Readonly<string[]>,
  n: { a: string }, o: `id-${string}`, p: true, q: any, r, s: ns.Array<string>, t: "x" | string, u: string | void,
): Promise<void> {}
"#,
        &expect![[r#"
            sample_tool = run: "Does a thing.\n\nIndented."
              a! {"type":"string","description":"the first"}
              b! {"type":"number","description":"the second"}
              c! {"type":"array","items":{"type":"boolean"}}
              d! {"type":"array","items":{"type":"array","items":{"type":"number"}}}
              e! {"type":"string","enum":["x","y"]}
              f {"type":"string","enum":["x"]}
              g {"type":"string"}
              h {"type":"number"}
              i {"type":"number"}
              j {"type":"string"}
              k! {"type":"number"}
              l! {"type":"array","items":{"type":"string","enum":["1","2"]}}
              m! {"type":"string"}
              n! {"type":"string"}
              o! {"type":"string"}
              p! {"type":"string","enum":["true"]}
              q! {"type":"string"}
              r! {"type":"string"}
              s! {"type":"string"}
              t! {"type":"string","enum":["x"]}
              u {"type":"string"}
        "#]],
    );
}

#[test]
fn an_agent_has_a_tool_for_each_exported_function() {
    check_agent(
        TypeScript,
        "/** I. */\nexport function _instructions() {}\n/** A. */ export default function getIt() {}\nfunction local() {}\n/** B. */\nexport const arrow = () => 1;\nexport function over(a: string): void;\n/** C. */\nexport function over(a: any) {}\n",
        &expect![[r#"
            with instructions
            getit = getIt: "A."
            over: "C."
              a! {"type":"string"}
        "#]],
    );
}

#[test]
fn refusals_have_a_place() {
    let cases = [
        (
            "/** D. */\nexport function run(a: {) {}\n",
            expect![[r#"
            syntax: line 2, column 25: syntax error: "}" is missing
        "#]],
        ),
        (
            "/* D. */\nexport function run() {}\n",
            expect![[r#"
            missing-description: line 2, column 8: "run" has no description: write a comment "/** … */" directly before it
        "#]],
        ),
        (
            "/** D. */\n// remark\nexport function run() {}\n",
            expect![[r#"
            missing-description: line 3, column 8: "run" has no description: write a comment "/** … */" directly before it
        "#]],
        ),
        (
            "/** D. */\nexport function run(...a: string[]) {}\n",
            expect![[r#"
            rest: line 2, column 21: a tool has a fixed number of parameters: take a list instead
        "#]],
        ),
        (
            "/** D. */\nexport function run({ a }: X) {}\n",
            expect![[r#"
            destructured: line 2, column 21: write one parameter for each value instead of taking one apart
        "#]],
        ),
        (
            "/** D. */\nexport function run([a]: X = []) {}\n",
            expect![[r#"
            destructured: line 2, column 21: write one parameter for each value instead of taking one apart
        "#]],
        ),
        (
            "/** D. */\nexport function run(this: X) {}\n",
            expect![[r#"
            unsupported-parameter: line 2, column 21: "this" is not a name
        "#]],
        ),
        (
            "/** D. */\nfunction run() {}\n",
            expect![[r#"
            entry: the file has no function to call: define "run" at the top level, in TypeScript as "export function run"
        "#]],
        ),
    ];
    for (source, expected) in cases {
        check(TypeScript, source, &expected);
    }
}
