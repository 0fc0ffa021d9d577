use std::path::PathBuf;

/// Where a criterion that runs code or names a model is defined. It decides what the criterion is allowed to do. It
/// is neither serialized nor compared. Criteria that were not read from a file, such as those of a run log or a
/// library caller, have no origin and get no permissions.
#[derive(Debug, Clone, Default, Eq)]
pub struct Origin {
    /// The criteria file: absolute, symbolic links resolved.
    pub file: Option<PathBuf>,
    /// The line of the file at which the criterion begins, counted from 1; 0 without a file.
    pub line: usize,
    /// The file that contains the code, if it is a separate one: absolute, symbolic links resolved.
    pub script: Option<PathBuf>,
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
