use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What kind of failure it is, in the order in which they are looked for.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCategory {
    /// It took too long.
    Timeout,
    /// It was not allowed.
    Permission,
    /// Something that it needs is not there.
    NotFound,
    /// Something could not be reached.
    Network,
    /// What it was given is wrong.
    Validation,
    /// Memory, disk, a quota or a rate is used up.
    Resource,
    /// Anything else: it went wrong itself.
    Execution,
}

impl ErrorCategory {
    /// All of them.
    pub(super) const ALL: [Self; 7] = [
        Self::Timeout,
        Self::Permission,
        Self::NotFound,
        Self::Network,
        Self::Validation,
        Self::Resource,
        Self::Execution,
    ];

    /// The word for it, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Permission => "permission",
            Self::NotFound => "not_found",
            Self::Network => "network",
            Self::Validation => "validation",
            Self::Resource => "resource",
            Self::Execution => "execution",
        }
    }

    /// Whether another plan may get around it. What is not allowed, wrongly called or broken stays so in any plan.
    pub fn is_worth_replanning(self) -> bool {
        match self {
            Self::Timeout | Self::NotFound | Self::Network | Self::Resource => true,
            Self::Permission | Self::Validation | Self::Execution => false,
        }
    }

    /// What to do about it.
    pub fn suggestion(self) -> &'static str {
        match self {
            Self::Timeout => "raise the timeout, or break the task into smaller ones",
            Self::Permission => "check in the configuration which permissions and keys it needs",
            Self::NotFound => {
                "make sure that files, paths and names are there before they are used"
            }
            Self::Network => {
                "check the network and the address, and try again once the service answers"
            }
            Self::Validation => "correct the values that the tool is given",
            Self::Resource => {
                "do less at once, or free memory, disk space or quota; where a rate is limited, wait"
            }
            Self::Execution => "check how the tool itself works: run it alone on the same input",
        }
    }
}

impl fmt::Display for ErrorCategory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::ErrorCategory::{
        Execution, Network, NotFound, Permission, Resource, Timeout, Validation,
    };

    #[test]
    fn another_plan_is_worth_it_as_the_seed_says() {
        for category in [Timeout, NotFound, Network, Resource] {
            assert!(category.is_worth_replanning(), "{category}");
        }
        for category in [Permission, Validation, Execution] {
            assert!(!category.is_worth_replanning(), "{category}");
        }
    }
}
