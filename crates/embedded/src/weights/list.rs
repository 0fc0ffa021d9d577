use std::path::{Path, PathBuf};

use super::spec::{ModelSpec, PINNED};

/// Weights on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalModel {
    /// How to refer to them.
    pub spec: ModelSpec,
    /// The file.
    pub path: PathBuf,
    /// The size in bytes.
    pub bytes: u64,
}

/// The maximum depth of folders in a repository.
const DEPTH: usize = 8;

/// The downloaded weights in a folder, by name. Unreadable folders are skipped.
pub fn list_local(models_dir: &Path) -> Vec<LocalModel> {
    let mut found = Vec::new();
    let default = models_dir.join(PINNED.file);
    if let Some(bytes) = size(&default) {
        found.push(LocalModel {
            spec: ModelSpec::Default,
            path: default,
            bytes,
        });
    }
    walk(&models_dir.join("hf"), &mut Vec::new(), &mut found);
    found.sort_by_key(|model| model.spec.to_string());
    found
}

fn walk(folder: &Path, names: &mut Vec<String>, found: &mut Vec<LocalModel>) {
    let Ok(entries) = fs_err::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        names.push(name);
        if entry.path().is_dir() {
            if names.len() < DEPTH {
                walk(&entry.path(), names, found);
            }
        } else if let Ok(spec @ ModelSpec::Hub { .. }) = format!("hf:{}", names.join("/")).parse()
            && let Some(bytes) = size(&entry.path())
        {
            found.push(LocalModel {
                spec,
                path: entry.path(),
                bytes,
            });
        }
        names.pop();
    }
}

fn size(path: &Path) -> Option<u64> {
    let metadata = fs_err::metadata(path).ok()?;
    metadata.is_file().then_some(metadata.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_only_downloaded_weights() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(list_local(&folder.path().join("none")), []);
        for file in [
            PINNED.file,
            "hf/a/b/c.gguf",
            "hf/a/b/c.gguf.part",
            "hf/a/b/sub/d.gguf",
            "hf/a/loose.gguf",
            "other.txt",
        ] {
            let path = folder.path().join(file);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, "1234").unwrap();
        }
        let found = list_local(folder.path());
        let names: Vec<String> = found.iter().map(|m| m.spec.to_string()).collect();
        assert_eq!(
            names,
            [
                "hf:a/b/c.gguf",
                "hf:a/b/sub/d.gguf",
                "smollm2-135m-instruct"
            ]
        );
        assert!(found.iter().all(|model| model.bytes == 4));
    }
}
