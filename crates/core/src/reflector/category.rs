use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The category of a failure, in the order in which they are tested.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCategory {
    /// It took too long.
    Timeout,
    /// It lacked a permission.
    Permission,
    /// Something that it needs does not exist.
    NotFound,
    /// Something was unreachable.
    Network,
    /// Its input was invalid.
    Validation,
    /// Memory, disk space, a quota or a rate limit was exhausted.
    Resource,
    /// Any other failure: the task itself failed.
    Execution,
}

impl ErrorCategory {
    /// All categories.
    pub(super) const ALL: [Self; 7] = [
        Self::Timeout,
        Self::Permission,
        Self::NotFound,
        Self::Network,
        Self::Validation,
        Self::Resource,
        Self::Execution,
    ];

    /// Returns the name, as in JSON.
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

    /// Returns whether a new plan may avoid the failure. Missing permissions, invalid input and
    /// defects affect every plan.
    pub fn is_worth_replanning(self) -> bool {
        match self {
            Self::Timeout | Self::NotFound | Self::Network | Self::Resource => true,
            Self::Permission | Self::Validation | Self::Execution => false,
        }
    }

    /// Returns a suggestion for this category.
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
