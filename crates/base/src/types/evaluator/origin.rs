use std::path::PathBuf;

/// Where a criterion is written that brings code along or names a model. It is no part of the criterion: it is
/// not kept with it, and criteria that differ in nothing else are the same. Criteria that were not read from a
/// file (a run log's, a library caller's) have none, and so are trusted for nothing they say.
#[derive(Debug, Clone, Default, Eq)]
pub struct Origin {
    /// The criteria file: absolute, symbolic links resolved.
    pub file: Option<PathBuf>,
    /// The line in it where the criterion begins, counted from 1; 0 where there is no file.
    pub line: usize,
    /// The file that the code was read from, if it is not in the criteria file itself; as `file`.
    pub script: Option<PathBuf>,
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
