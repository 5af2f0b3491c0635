//! Tools in Python.

use expect_test::expect;

use super::{check, check_agent};
use crate::Language::Python;
use crate::{Scope, declare};

#[test]
fn annotations_are_types() {
    check(
        Python,
        r#"
import os
from typing import List, Literal, Optional

@decorated(1)
async def run(
    a: str, b: int, c: float, d: bool, e,  # a remark
    f: List[List[int]], g: list[bool], h: typing.List["X"],
    i: Literal["x", 'y', -1, True], j: Optional[List[Literal["q"]]],
    k: int | None, l: Union[None, float], m: int | str, n: dict[str, int], o: "int", p: None, q: List,
    *, r: str = os.getenv("X"), s=1, t: typing.Literal["z"] | None = None, u: List[Optional[int]],
) -> dict[str, int]:
    """Does a thing."""
"#,
        &expect![[r#"
            sample_tool = run: "Does a thing."
              a! {"type":"string"}
              b! {"type":"integer"}
              c! {"type":"number"}
              d! {"type":"boolean"}
              e! {"type":"string"}
              f! {"type":"array","items":{"type":"array","items":{"type":"integer"}}}
              g! {"type":"array","items":{"type":"boolean"}}
              h! {"type":"array","items":{"type":"string"}}
              i! {"type":"string","enum":["x","y","-1","True"]}
              j {"type":"array","items":{"type":"string","enum":["q"]}}
              k {"type":"integer"}
              l {"type":"number"}
              m! {"type":"string"}
              n! {"type":"string"}
              o! {"type":"string"}
              p! {"type":"string"}
              q! {"type":"string"}
              r {"type":"string"}
              s {"type":"string"}
              t {"type":"string","enum":["z"]}
              u! {"type":"array","items":{"type":"integer"}}
        "#]],
    );
}

#[test]
fn unions_have_alternatives_with_parameters() {
    check(
        Python,
        r#"
def run(
    a: list[str] | None, b: None | List[int], c: list[int] | str | None, d: int | list[int], e: dict[str, int] | None,
    f: list[list[int] | None], g: Literal["x", "y"] | None, h: list[int] | None | None, i: Optional[int] | None,
):
    """Does a thing."""
"#,
        &expect![[r#"
            sample_tool = run: "Does a thing."
              a {"type":"array","items":{"type":"string"}}
              b {"type":"array","items":{"type":"integer"}}
              c {"type":"string"}
              d! {"type":"string"}
              e {"type":"string"}
              f! {"type":"array","items":{"type":"array","items":{"type":"integer"}}}
              g {"type":"string","enum":["x","y"]}
              h {"type":"array","items":{"type":"integer"}}
              i {"type":"integer"}
        "#]],
    );
}

#[test]
fn docstrings_describe_parameters() {
    check(
        Python,
        r#"
def run(a, b, c: str, d, e, f, g):
    '''Head.

    Args:
        a (int): first: with a colon
        b (list[float], optional): second

        c (int): keeps its annotation
            more of it
        d bool: without parentheses
        e (optional): last
        f (list[list[int]]):
Returns: nothing
        g: after the section
    '''
"#,
        &expect![[r#"
            sample_tool = run: "Head.\n\n    Args:\n        a (int): first: with a colon\n        b (list[float], optional): second\n\n        c (int): keeps its annotation\n            more of it\n        d bool: without parentheses\n        e (optional): last\n        f (list[list[int]]):\nReturns: nothing\n        g: after the section"
              a! {"type":"integer","description":"first: with a colon"}
              b {"type":"string","description":"second"}
              c! {"type":"string"}
              d! {"type":"string"}
              e! {"type":"string"}
              f! {"type":"string"}
              g! {"type":"string"}
        "#]],
    );
}

#[test]
fn an_agent_has_a_tool_for_each_function() {
    check_agent(
        Python,
        "def _instructions():\n  return ''\ndef _hidden(*a): pass\ndef getThing(a):\n  r'''Gets \\d.'''\nclass A:\n  def inner(self): 'No.'\ndef größe(): 'Size.'\n",
        &expect![[r#"
            with instructions
            getthing = getThing: "Gets \\d."
              a! {"type":"string"}
            gr_e = größe: "Size."
        "#]],
    );
    check_agent(Python, "x = 1\n", &expect![[""]]);
}

#[test]
fn refusals_have_a_place() {
    let cases = [
        (
            "def run(:\n  'D.'\n",
            expect![[r#"
            syntax: line 1, column 9: syntax error: ")" is missing
        "#]],
        ),
        (
            "def run(a):\n  '''D.'''\nx = = 1\n",
            expect![[r#"
            syntax: line 3, column 5: syntax error at "="
        "#]],
        ),
        (
            "def run(a):\n  return a\n",
            expect![[r#"
            missing-description: line 1, column 1: "run" has no description: begin it with a docstring
        "#]],
        ),
        (
            "def run(a):\n  f'''D {a}.'''\n",
            expect![[r#"
            missing-description: line 1, column 1: "run" has no description: begin it with a docstring
        "#]],
        ),
        (
            "def run(a):\n  '''  \n  '''\n",
            expect![[r#"
            missing-description: line 1, column 1: "run" has no description: begin it with a docstring
        "#]],
        ),
        (
            "def run(ä, *args: int):\n  'D.'\n",
            expect![[r#"
            variadic-or-positional-only: line 1, column 12: tools are called with arguments that have names: replace "*args", "**kwargs" and "/" by parameters
        "#]],
        ),
        (
            "def run(a,\n  **kw):\n  'D.'\n",
            expect![[r#"
            variadic-or-positional-only: line 2, column 3: tools are called with arguments that have names: replace "*args", "**kwargs" and "/" by parameters
        "#]],
        ),
        (
            "def run(a, /):\n  'D.'\n",
            expect![[r#"
            variadic-or-positional-only: line 1, column 12: tools are called with arguments that have names: replace "*args", "**kwargs" and "/" by parameters
        "#]],
        ),
        (
            "def run(a, a):\n  'D.'\n",
            expect![[r#"
            syntax: line 1, column 12: the parameter "a" exists twice
        "#]],
        ),
        (
            "def other():\n  'D.'\n",
            expect![[r#"
            entry: the file has no function to call: define "run" at the top level, in TypeScript as "export function run"
        "#]],
        ),
        (
            "def run():\n  'D.'\ndef run():\n  'E.'\n",
            expect![[r#"
            entry: the file has 2 functions to call; a file in a folder of tools has one
        "#]],
        ),
    ];
    for (source, expected) in cases {
        check(Python, source, &expected);
    }
}

#[test]
fn a_file_names_its_tool() {
    let name = |stem: &str| {
        let declared = declare(Python, Scope::File { stem }, "def run():\n  'D.'\n");
        declared.map(|declared| declared.tools[0].name.clone()).map_err(|error| error.fault.word())
    };
    assert_eq!(name("GetWeather"), Ok("getweather".to_owned()));
    assert_eq!(name("__my  tool-2.x"), Ok("my_tool_2_x".to_owned()));
    assert_eq!(name("日本"), Err("name"));
}
