//! Loaders: programs of a worker's operator that turn a file, or what a name stands for, into texts.

/// Most bytes of the command of a loader.
const COMMAND_BYTES_MAX: usize = 4_096;

/// A program that reads what this one does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loader {
    /// The type of files that it reads, or the word in front of a source.
    pub name: String,
    /// Whether it reads what a source names behind that word. Others read only files that pages are.
    pub reads_sources: bool,
    words: Vec<String>,
}

/// Why a text is no loader.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadLoader {
    #[error("a loader is NAME=COMMAND, or NAME:=COMMAND for sources; its name has small letters, digits and -")]
    Name,
    #[error("the name {0} is taken by another form of a source")]
    Taken(String),
    #[error("the command of the loader {0} is empty, too long, or has a quotation mark that is not closed")]
    Command(String),
    #[error("the command of the loader {0} has no $1, the place of its input")]
    NoInput(String),
}

/// What a program printed or wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoaderCommand<'a> {
    /// The command, word by word: the program and its arguments. No shell reads it.
    pub words: Vec<String>,
    /// Where it writes; none if it prints.
    pub output: Option<&'a str>,
}

/// Words in front of a source that mean another form.
pub(crate) const TAKEN: [&str; 9] = ["http", "https", "git", "sitemap", "file", "ssh", "ftp", "data", "scp"];

impl Loader {
    /// Reads `NAME=COMMAND` for files of pages, or `NAME:=COMMAND` for sources that begin with `NAME:`. They are two, because whoever writes a
    /// source chooses what its program gets: a path of the worker, for example. The command is split like a shell does it.
    pub fn read(text: &str) -> Result<Self, BadLoader> {
        let (name, command) = text.split_once('=').ok_or(BadLoader::Name)?;
        let (name, reads_sources) = name.strip_suffix(':').map_or((name, false), |name| (name, true));
        if !is_name(name) {
            return Err(BadLoader::Name);
        }
        if TAKEN.contains(&name) {
            return Err(BadLoader::Taken(name.to_owned()));
        }
        let bad = || BadLoader::Command(name.to_owned());
        let words = shell_words::split(command).map_err(|_| bad())?;
        if words.first().is_none_or(String::is_empty) || command.len() > COMMAND_BYTES_MAX {
            return Err(bad());
        }
        if !words.iter().skip(1).any(|word| word.contains("$1")) {
            return Err(BadLoader::NoInput(name.to_owned()));
        }
        Ok(Self { name: name.to_owned(), reads_sources, words })
    }
}

/// The command of a loader for an input, with the file to which it writes if it asks for one by `$2`.
pub fn loaded<'a>(loader: &Loader, input: &str, output: &'a str) -> LoaderCommand<'a> {
    let writes = loader.words.iter().any(|word| word.contains("$2"));
    // What is put in is not looked at again: an input may have a $2.
    let filled = |word: &String| {
        let parts: Vec<String> = word.split("$1").map(|part| part.replace("$2", output)).collect();
        parts.join(input)
    };
    let words = loader.words.iter().enumerate();
    let words = words.map(|(place, word)| if place == 0 { word.clone() } else { filled(word) }).collect();
    LoaderCommand { words, output: writes.then_some(output) }
}

pub(crate) fn is_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|c| c.is_ascii_lowercase())
        && name.len() <= 32
        && characters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_split_and_filled_in() {
        let words = |text: &str, input: &str| loaded(&Loader::read(text).expect("a loader"), input, "/out").words;
        assert_eq!(words("pdf=pdftotext -layout $1 -", "/a b;$(x)"), ["pdftotext", "-layout", "/a b;$(x)", "-"]);
        assert_eq!(
            words("docx=pandoc 'a b' --to=plain -o $2 $1", "$2"),
            ["pandoc", "a b", "--to=plain", "-o", "/out", "$2"]
        );
        let loader = Loader::read("x=y $1").expect("a loader");
        assert!(!loader.reads_sources && Loader::read("x:=y $1").expect("a loader").reads_sources);
        assert_eq!(loaded(&loader, "in", "/out").output, None);
    }

    #[test]
    fn what_is_no_loader_is_refused() {
        for (text, expected) in [
            ("pdftotext", BadLoader::Name),
            ("=x $1", BadLoader::Name),
            ("A b=x $1", BadLoader::Name),
            ("https=x $1", BadLoader::Taken("https".to_owned())),
            ("pdf=", BadLoader::Command("pdf".to_owned())),
            ("pdf='x $1", BadLoader::Command("pdf".to_owned())),
            ("pdf=x", BadLoader::NoInput("pdf".to_owned())),
            ("pdf=$1", BadLoader::NoInput("pdf".to_owned())),
        ] {
            assert_eq!(Loader::read(text), Err(expected), "{text}");
        }
    }
}
