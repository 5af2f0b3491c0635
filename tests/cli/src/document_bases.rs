//! Document bases: adding folders with files of every kind, searching, removing, exporting.

use std::fs;

use expect_test::expect_file;

use crate::laptop::Laptop;

#[test]
fn documents_are_added_searched_and_exported() {
    let laptop = Laptop::with(&[]);
    let handbook = laptop.folder().join("handbook");
    let write = |name: &str, bytes: &[u8]| {
        let path = handbook.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, bytes).expect("written");
    };
    write("leave.md", b"# Leave\n\nEveryone has thirty days of leave a year.\n");
    write("money/expenses.md", b"# Expenses\n\nMeals are paid up to 40 euros a day.\n");
    write("laptops.html", b"<h1>Laptops</h1><script>x</script><p>A laptop is replaced after four years.</p>");
    write("photo.png", b"\x89PNG\0");
    write(".hidden", b"nobody reads it");
    let mut session = laptop.session("Document bases");
    session.run("atlasctl rag list");
    session.run("atlasctl rag show handbook");
    session.run("atlasctl rag create handbook handbook --description 'How we work.'");
    session.run("atlasctl rag create handbook handbook");
    session.run("atlasctl rag create handbook --top-k 3");
    session.run("atlasctl rag create handbook --top-k 3 --replace");
    session.run("atlasctl rag create handbook --chunk-size 1 --replace");
    session.run("atlasctl rag list handbook");
    session.run("atlasctl rag search handbook how many days of leave --top-k 1");
    session.run("atlasctl rag explain handbook laptop years days");
    session.run("atlasctl rag search handbook whales");
    session.run("atlasctl rag search handbook laptop -o jsonpath={.hits[0].source}");
    session.run("atlasctl rag add handbook handbook/photo.png");
    session.run("atlasctl rag add handbook nothing");
    session.run("atlasctl rag add handbook");
    write("leave.md", b"# Leave\n\nEveryone has thirty-two days of leave a year.\n");
    session.run("atlasctl rag add handbook 'handbook/*.md' --metadata team=people");
    session.run("atlasctl rag search handbook leave --metadata team=people -o name");
    session.run("atlasctl rag remove handbook handbook/laptops.html nothing");
    session.run("atlasctl rag search handbook laptop");
    session.run("atlasctl rag rebuild handbook");
    fs::write(laptop.folder().join("more.jsonl"), "{\"source\": \"../../evil.md\", \"text\": \"out\"}\n")
        .expect("written");
    session.run("atlasctl rag add handbook --jsonl more.jsonl");
    session.run("atlasctl rag export handbook copy");
    let written = |name: &str| fs::read_to_string(laptop.folder().join("copy").join(name));
    assert_eq!(
        written("handbook/leave.md").expect("a file"),
        "# Leave\n\nEveryone has thirty-two days of leave a year.\n"
    );
    assert_eq!(written("%2E%2E/%2E%2E/evil.md").expect("below the folder"), "out");
    session.run("atlasctl rag export handbook --jsonl --source handbook/");
    session.run("atlasctl rag list --columns name,documents");
    session.run("atlasctl rag delete handbook");
    session.run("atlasctl rag delete handbook --yes");
    session.run("atlasctl rag search handbook leave");
    expect_file!["../transcripts/document-bases.txt"].assert_eq(&session.page());
}
