//! Loops that are like another one but for a thing or two.

use std::sync::Arc;

use super::driver::Loop;
use crate::types::{Criteria, ModelId, Strategy};

impl Loop {
    /// Who writes.
    pub fn writer(&self) -> &ModelId {
        self.writer.id()
    }

    /// What drafts are measured by.
    pub fn criteria(&self) -> &Criteria {
        &self.criteria
    }

    /// How drafts are revised.
    pub fn strategy(&self) -> Strategy {
        self.settings.strategy()
    }

    /// Who takes over where the writer makes no progress any more, if somebody does.
    pub fn stronger(&self) -> Option<&ModelId> {
        self.stronger.as_ref().map(|model| model.id())
    }

    /// The same loop, in which the stronger model writes from the beginning; `None` if there is none.
    pub fn by_stronger(&self) -> Option<Self> {
        let stronger = self.stronger.as_ref()?;
        Some(Self {
            writer: Arc::clone(stronger),
            stronger: None,
            ..self.clone()
        })
    }

    /// The same loop, in which drafts are revised by this strategy.
    #[must_use]
    pub fn with_strategy(&self, strategy: Strategy) -> Self {
        let mut other = self.clone();
        other.settings.strategy = Some(strategy);
        other
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::model::{ChatModel, ScriptedModel};

    #[test]
    fn a_variant_differs_in_one_thing() {
        let model = |name: &str| -> Arc<dyn ChatModel> {
            let script = "[[reply]]\ntext = 'one'";
            Arc::new(ScriptedModel::parse(Path::new(name), script).unwrap())
        };
        let criteria = "name = 'c'\n[[criteria]]\nname = 'short'\nevaluator = 'length'\nmax = 9";
        let criteria = Arc::new(crate::criteria::parse(criteria, "c.toml").unwrap());
        let plain = Loop::builder(model("weak.toml"), Arc::clone(&criteria));
        assert!(plain.build().unwrap().by_stronger().is_none());
        let both = Loop::builder(model("weak.toml"), criteria).stronger(model("strong.toml"));
        let both = both.build().unwrap();
        let stronger = both.by_stronger().unwrap();
        assert_ne!(stronger.writer(), both.writer());
        assert_eq!(both.stronger(), Some(stronger.writer()));
        assert_eq!(stronger.stronger(), None);
        assert_eq!(stronger.criteria().name, "c");
        let edits = both.with_strategy(Strategy::TargetedEdit);
        assert_eq!(edits.strategy(), Strategy::TargetedEdit);
        assert_eq!(edits.writer(), both.writer());
    }
}
