//! Where documents of each kind are cut.

/// Where text is cut that has no other separators, after those of its kind: blank lines, lines, words, characters.
const TEXT: [&str; 4] = ["\n\n", "\n", " ", ""];

const C: &[&str] = &[
    "\nclass ",
    "\nstruct ",
    "\nvoid ",
    "\nint ",
    "\nfloat ",
    "\ndouble ",
    "\nif ",
    "\nfor ",
    "\nwhile ",
    "\nswitch ",
    "\ncase ",
];
const GO: &[&str] = &["\nfunc ", "\nvar ", "\nconst ", "\ntype ", "\nif ", "\nfor ", "\nswitch ", "\ncase "];
const JAVA: &[&str] = &[
    "\nclass ",
    "\ninterface ",
    "\npublic ",
    "\nprotected ",
    "\nprivate ",
    "\nstatic ",
    "\nif ",
    "\nfor ",
    "\nwhile ",
    "\nswitch ",
    "\ncase ",
];
const JAVASCRIPT: &[&str] = &[
    "\nexport ",
    "\nfunction ",
    "\nclass ",
    "\ninterface ",
    "\nconst ",
    "\nlet ",
    "\nvar ",
    "\nif ",
    "\nfor ",
    "\nwhile ",
    "\nswitch ",
    "\ncase ",
    "\ndefault ",
];
const PHP: &[&str] = &["\nfunction ", "\nclass ", "\nif ", "\nforeach ", "\nwhile ", "\ndo ", "\nswitch ", "\ncase "];
const PROTOBUF: &[&str] = &["\nmessage ", "\nservice ", "\nenum ", "\noption ", "\nimport ", "\nsyntax "];
const PYTHON: &[&str] = &["\nclass ", "\nasync def ", "\ndef ", "\n    def ", "\n\tdef "];
const RESTRUCTURED_TEXT: &[&str] = &["\n===", "\n---", "\n***", "\n.. "];
const RUBY: &[&str] =
    &["\nmodule ", "\nclass ", "\ndef ", "\nif ", "\nunless ", "\nwhile ", "\nfor ", "\ndo ", "\nbegin ", "\nrescue "];
const RUST: &[&str] = &[
    "\nmod ",
    "\nimpl",
    "\npub ",
    "\nfn ",
    "\nconst ",
    "\n    pub fn ",
    "\n    fn ",
    "\nlet ",
    "\nif ",
    "\nwhile ",
    "\nfor ",
    "\nloop ",
    "\nmatch ",
];
const SCALA: &[&str] = &[
    "\nclass ",
    "\ntrait ",
    "\nobject ",
    "\ndef ",
    "\nval ",
    "\nvar ",
    "\nif ",
    "\nfor ",
    "\nwhile ",
    "\nmatch ",
    "\ncase ",
];
const SWIFT: &[&str] = &[
    "\nprotocol ",
    "\nextension ",
    "\nclass ",
    "\nstruct ",
    "\nenum ",
    "\nfunc ",
    "\nif ",
    "\nfor ",
    "\nwhile ",
    "\ndo ",
    "\nswitch ",
    "\ncase ",
];
const MARKDOWN: &[&str] =
    &["\n# ", "\n## ", "\n### ", "\n#### ", "\n##### ", "\n###### ", "\n```", "\n\n***\n", "\n\n---\n", "\n\n___\n"];
const LATEX: &[&str] = &[
    "\n\\chapter{",
    "\n\\section{",
    "\n\\subsection{",
    "\n\\subsubsection{",
    "\n\\begin{enumerate}",
    "\n\\begin{itemize}",
    "\n\\begin{description}",
    "\n\\begin{list}",
    "\n\\begin{quote}",
    "\n\\begin{quotation}",
    "\n\\begin{verse}",
    "\n\\begin{verbatim}",
    "\n\\begin{align}",
    "$$",
];
const HTML: &[&str] = &[
    "<body", "<h1", "<h2", "<h3", "<h4", "<h5", "<h6", "<div", "<p", "<table", "<ul", "<ol", "<tr", "<li", "<br",
    "<span", "<td", "<th",
];
const SOLIDITY: &[&str] = &[
    "\npragma ",
    "\nusing ",
    "\ncontract ",
    "\ninterface ",
    "\nlibrary ",
    "\nconstructor ",
    "\ntype ",
    "\nfunction ",
    "\nevent ",
    "\nmodifier ",
    "\nerror ",
    "\nstruct ",
    "\nenum ",
    "\nif ",
    "\nfor ",
    "\nwhile ",
    "\nassembly ",
];

/// The separators of a document, the strongest first. The kind follows from the ending of its source: a path or an address.
pub(crate) fn of(source: &str) -> Vec<&'static str> {
    let kind = kind(&ending(source));
    kind.iter().copied().chain(TEXT).collect()
}

fn kind(ending: &str) -> &'static [&'static str] {
    match ending {
        "c" | "h" | "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" => C,
        "go" => GO,
        "java" => JAVA,
        "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "cts" => JAVASCRIPT,
        "php" => PHP,
        "proto" => PROTOBUF,
        "py" | "pyi" => PYTHON,
        "rst" => RESTRUCTURED_TEXT,
        "rb" => RUBY,
        "rs" => RUST,
        "scala" | "sc" => SCALA,
        "swift" => SWIFT,
        "md" | "mkd" | "markdown" => MARKDOWN,
        "tex" => LATEX,
        "htm" | "html" | "xhtml" => HTML,
        "sol" => SOLIDITY,
        _ => &[],
    }
}

/// What follows the last dot of the last part of a path or an address, in lower case; empty without a dot.
fn ending(source: &str) -> String {
    let path = source.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_follows_from_the_ending() {
        for (source, wanted) in [
            ("a/b.rs", "rs"),
            ("A.MD", "md"),
            ("https://example.com/a.html?x=1.py#y", "html"),
            ("a.d/readme", ""),
            ("", ""),
            ("c:\\x\\y.tex", "tex"),
        ] {
            assert_eq!(ending(source), wanted, "{source}");
        }
        assert_eq!(of("a.proto").first(), Some(&"\nmessage "));
        assert_eq!(of("a.txt"), TEXT);
    }

    #[test]
    fn every_kind_ends_with_characters() {
        for source in ["a.c", "a.go", "a.java", "a.ts", "a.php", "a.proto", "a.py", "a.rst", "a.rb", "a.rs", "a.scala"]
        {
            assert_eq!(of(source).last(), Some(&""), "{source}");
            assert!(of(source).len() > TEXT.len(), "{source}");
        }
        for source in ["a.swift", "a.md", "a.tex", "a.html", "a.sol"] {
            assert!(of(source).len() > TEXT.len(), "{source}");
        }
    }
}
