use expect_test::expect;

use super::*;

#[test]
fn what_pip_takes_is_taken() {
    for entry in [
        "requests",
        "requests>=2.31",
        "Django == 4.2.*",
        "numpy (>=1.20, <3)",
        "a-b_c.d~=1.4.2",
        "uvicorn[standard,http.tools] >= 0.20 ; python_version < '3.13' and (sys_platform == \"linux\" or extra not in 'a b')",
        "p===2.0.foo+bar",
        "p>=1,",
        "p>=1!2.0rc1.post2.dev3",
        "p @ https://host/p-1.0-py3-none-any.whl",
        "p[x] @ git+https://host/p.git@v1.2#subdirectory=sub ; os_name == 'posix'",
        "git+ssh://git@host/p.git@main#egg=p",
        "https://host/p-1.0.tar.gz#sha256=00",
        "file:///srv/wheels/p-1.0-py3-none-any.whl",
        "/srv/wheels/p-1.0-py3-none-any.whl",
        "requests  # for the web",
        "# only a comment",
        "",
        "   ",
    ] {
        assert_eq!(check_pip_requirement(entry), Ok(()), "{entry}");
    }
}

#[test]
fn what_pip_refuses_is_told() {
    let told: String = [
        "-e .",
        "-r requirements.txt",
        "--index-url https://host/simple",
        "requests==2.0 --hash=sha256:00",
        "requests=2.31",
        "requests 2.31",
        "requests>=",
        "requests>=new",
        "requests>=2.*",
        "requests~=2",
        "requests[security",
        "requests[a b]",
        "requests>=2,,<3",
        "requests; python_versoin < '3.12'",
        "requests; python_version < 3.12",
        "requests; python_version",
        "requests; (python_version < '3.12'",
        "requests; python_version < '3.12",
        "requests @ there",
        "./wheels/p.whl",
        "wheels/p.whl",
        "gopher://host/p",
        "git+https://",
        "https://host/a b",
        "https://${TOKEN}@host/p.whl",
        "[x]",
        "ü",
        "a\nb",
    ]
    .map(|entry| format!("{entry:?}: {}\n", check_pip_requirement(entry).expect_err(entry)))
    .concat();
    expect![[r#"
        "-e .": it has an option of pip; a requirement looks like "requests>=2.31", and options of pip are set on workers, as variables such as PIP_INDEX_URL
        "-r requirements.txt": it has an option of pip; a requirement looks like "requests>=2.31", and options of pip are set on workers, as variables such as PIP_INDEX_URL
        "--index-url https://host/simple": it has an option of pip; a requirement looks like "requests>=2.31", and options of pip are set on workers, as variables such as PIP_INDEX_URL
        "requests==2.0 --hash=sha256:00": it has an option of pip; a requirement looks like "requests>=2.31", and options of pip are set on workers, as variables such as PIP_INDEX_URL
        "requests=2.31": "=2.31" is no version with an operator such as >= or ==; did you mean "requests==2.31"?
        "requests 2.31": "2.31" is no version with an operator such as >= or ==; did you mean "requests==2.31"?
        "requests>=": "" after ">=" is no version
        "requests>=new": "new" after ">=" is no version
        "requests>=2.*": "2.*" after ">=" is no version
        "requests~=2": "2" after "~=" is no version
        "requests[security": the bracket of its extras is not closed
        "requests[a b]": "[a b]" is no list of extras
        "requests>=2,,<3": "" is no version with an operator such as >= or ==
        "requests; python_versoin < '3.12'": its marker "python_versoin < '3.12'" is wrong: python_versoin is no variable of an environment; did you mean python_version?
        "requests; python_version < 3.12": its marker "python_version < 3.12" is wrong: 3.12 is no variable of an environment
        "requests; python_version": its marker "python_version" is wrong: a comparison is missing after python_version
        "requests; (python_version < '3.12'": its marker "(python_version < '3.12'" is wrong: a parenthesis is not closed
        "requests; python_version < '3.12": its marker "python_version < '3.12" is wrong: a text does not end
        "requests @ there": after "@" it has no address; a requirement looks like "requests>=2.31"
        "./wheels/p.whl": it is a path, and workers have only the agent's own folder, from which it needs no installation; a requirement looks like "requests>=2.31"
        "wheels/p.whl": it is a path, and workers have only the agent's own folder, from which it needs no installation; a requirement looks like "requests>=2.31"
        "gopher://host/p": pip does not fetch from addresses with "gopher://"
        "git+https://": "git+https://" is no address
        "https://host/a b": "https://host/a b" is no address
        "https://${TOKEN}@host/p.whl": it names a variable, and nothing replaces it; pip's variables are set on workers
        "[x]": it does not begin with the name of a package; a requirement looks like "requests>=2.31"
        "ü": it does not begin with the name of a package; a requirement looks like "requests>=2.31"
        "a\nb": it has more than one line or a control character; write each package as an entry of its own
    "#]].assert_eq(&told);
}

#[test]
fn comments_are_no_part_of_a_requirement() {
    let of = pip_requirement;
    assert_eq!(of(" requests>=2 # why"), Some("requests>=2"));
    assert_eq!(of("git+https://host/p#egg=p"), Some("git+https://host/p#egg=p"));
    assert_eq!((of("# x"), of(" "), of("")), (None, None, None));
}

proptest::proptest! {
    #[test]
    fn no_entry_breaks_the_check(entry in "\\PC{0,40}", pieces in "[-a-z0-9.,;@#/:<>=!~\\[\\]() '\"+]{0,40}") {
        let _ = (check_pip_requirement(&entry), check_pip_requirement(&pieces));
    }
}
