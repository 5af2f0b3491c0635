//! The command line of an agent in a container (compatibility §25.4).

use atlas_contract::Permissions;

/// An agent that is to run in a container of Docker, or of a program with the same options.
#[derive(Debug, Clone, Copy)]
pub struct Container<'c> {
    /// The network: `none`, `bridge` or the name of one.
    pub network: &'c str,
    /// The effective permissions; their image is the container's.
    pub permissions: &'c Permissions,
    /// Names of secrets. Their values must be in the environment of the program that gets the command line.
    pub secrets: &'c [String],
    /// The folder of the machine that is mounted as `/workspace`.
    pub folder: Option<&'c str>,
}

/// Why no container can be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContainerError {
    #[error("the agent runs in a container, but neither its contract nor the policy names an image")]
    NoImage,
    #[error("\"{0}\" is not the name of an image")]
    Image(String),
    #[error("\"{0}\" is not the name of a network")]
    Network(String),
    #[error("\"{0}\" is not the name of a secret")]
    Secret(String),
    #[error("the folder \"{0}\" must not contain \"..\" or \":\"")]
    Folder(String),
}

impl Container<'_> {
    /// The program and its arguments.
    ///
    /// A secret is on it by its name alone, without a value: every user of a machine can read command lines.
    pub fn command_line(&self) -> Result<Vec<String>, ContainerError> {
        let Permissions { container_image: image, filesystem, .. } = self.permissions;
        if image.is_empty() {
            return Err(ContainerError::NoImage);
        }
        if !is_word(image) {
            return Err(ContainerError::Image(image.clone()));
        }
        if !is_word(self.network) {
            return Err(ContainerError::Network(self.network.to_owned()));
        }
        let mut words = vec!["docker", "run", "--rm", "-i", "--network", self.network];
        let memory = format!("{}m", self.permissions.max_memory_mb);
        if self.permissions.max_memory_mb > 0 {
            words.extend(["--memory", &memory]);
        }
        if self.permissions.max_cpu_seconds > 0 {
            words.extend(["--cpus", "1"]);
        }
        for secret in self.secrets {
            if !atlas_secrets::is_name(secret) {
                return Err(ContainerError::Secret(secret.clone()));
            }
            words.extend(["-e", secret]);
        }
        let may = |scope: &str| filesystem.iter().any(|allowed| allowed.eq_ignore_ascii_case(scope));
        let mount = match self.folder {
            Some(folder) if folder.is_empty() || folder.contains(':') || folder.split('/').any(|part| part == "..") => {
                return Err(ContainerError::Folder(folder.to_owned()));
            }
            Some(folder) if may("write") => Some(format!("{folder}:/workspace")),
            Some(folder) if may("read") => Some(format!("{folder}:/workspace:ro")),
            _ => None,
        };
        if let Some(mount) = &mount {
            words.extend(["-v", mount, "-w", "/workspace"]);
        }
        words.push(image);
        Ok(words.into_iter().map(str::to_owned).collect())
    }
}

/// Whether a text is one argument that cannot be taken for an option.
fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('-') && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn permissions(image: &str, filesystem: &[&str]) -> Permissions {
        Permissions {
            container_image: image.to_owned(),
            filesystem: filesystem.iter().map(|scope| (*scope).to_owned()).collect(),
            ..Permissions::default()
        }
    }

    fn check(permissions: &Permissions, secrets: &[&str], folder: Option<&str>, expected: &Expect) {
        let secrets: Vec<String> = secrets.iter().map(|secret| (*secret).to_owned()).collect();
        let container = Container { network: "none", permissions, secrets: &secrets, folder };
        expected.assert_eq(&match container.command_line() {
            Ok(words) => words.join(" "),
            Err(error) => format!("error: {error}"),
        });
    }

    #[test]
    fn limits_are_options() {
        check(
            &permissions("img", &[]),
            &[],
            None,
            &expect!["docker run --rm -i --network none --memory 512m --cpus 1 img"],
        );
        let unlimited = Permissions { max_memory_mb: 0, max_cpu_seconds: -1, ..permissions("img", &[]) };
        check(&unlimited, &[], None, &expect!["docker run --rm -i --network none img"]);
    }

    #[test]
    fn a_folder_is_mounted_as_the_permissions_say() {
        let folder = Some("/agents/a");
        check(
            &permissions("img", &["read"]),
            &[],
            folder,
            &expect![
                "docker run --rm -i --network none --memory 512m --cpus 1 -v /agents/a:/workspace:ro -w /workspace img"
            ],
        );
        check(
            &permissions("img", &["read", "write"]),
            &[],
            folder,
            &expect![
                "docker run --rm -i --network none --memory 512m --cpus 1 -v /agents/a:/workspace -w /workspace img"
            ],
        );
        check(
            &permissions("img", &["Write"]),
            &[],
            folder,
            &expect![
                "docker run --rm -i --network none --memory 512m --cpus 1 -v /agents/a:/workspace -w /workspace img"
            ],
        );
        check(
            &permissions("img", &[]),
            &[],
            folder,
            &expect!["docker run --rm -i --network none --memory 512m --cpus 1 img"],
        );
    }

    #[test]
    fn values_of_secrets_are_not_on_the_command_line() {
        check(
            &permissions("img", &[]),
            &["TOKEN", "B"],
            None,
            &expect!["docker run --rm -i --network none --memory 512m --cpus 1 -e TOKEN -e B img"],
        );
    }

    #[test]
    fn what_would_change_other_options_is_refused() {
        check(
            &permissions("", &[]),
            &[],
            None,
            &expect!["error: the agent runs in a container, but neither its contract nor the policy names an image"],
        );
        check(
            &permissions("--privileged", &[]),
            &[],
            None,
            &expect![[r#"error: "--privileged" is not the name of an image"#]],
        );
        check(&permissions("a b", &[]), &[], None, &expect![[r#"error: "a b" is not the name of an image"#]]);
        check(
            &permissions("img", &[]),
            &["A=canary"],
            None,
            &expect![[r#"error: "A=canary" is not the name of a secret"#]],
        );
        for folder in ["/a/../b", "..", "", "/a:/etc"] {
            let permissions = permissions("img", &["read"]);
            let container =
                Container { network: "none", permissions: &permissions, secrets: &[], folder: Some(folder) };
            assert_eq!(container.command_line(), Err(ContainerError::Folder(folder.to_owned())));
        }
        let network = Container { network: "-v", permissions: &permissions("i", &[]), secrets: &[], folder: None };
        assert_eq!(network.command_line(), Err(ContainerError::Network("-v".to_owned())));
    }
}
