//! Chooses an installed model if the user names none.

use super::loaded;
use crate::http::Connection;
use crate::listing::ListedModel;

/// An installed model and why it was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preferred {
    /// Its name on the server.
    pub name: String,
    /// The reason, to be appended to the name.
    pub why: &'static str,
}

/// Models with fewer parameters rarely write usable text.
const SMALL: u64 = 1_000_000_000;

/// The installed model to use if the user names none: a loaded one, otherwise the most recently modified one. Models
/// that run on other hosts or cannot write text are never chosen; small ones only if there is no larger one.
/// `installed` is in the server's order, newest first.
pub async fn preferred(connection: &Connection, installed: &[ListedModel]) -> Option<Preferred> {
    let loaded = loaded(connection).await.unwrap_or_default();
    let loaded: Vec<&str> = loaded.iter().map(|it| it.name.as_str()).collect();
    choose(installed, &loaded)
}

fn choose(installed: &[ListedModel], loaded: &[&str]) -> Option<Preferred> {
    let writers: Vec<&ListedModel> = installed.iter().filter(|it| can_write(it)).collect();
    let is_small = |model: &ListedModel| model.parameters.is_some_and(|size| size < SMALL);
    let small_only = writers.iter().all(|it| is_small(it));
    let fit = |it: &&&ListedModel| small_only || !is_small(it);
    let of = |model: &ListedModel, why| Preferred {
        name: model.name.clone(),
        why,
    };
    let is_loaded = |it: &&&ListedModel| loaded.contains(&it.name.as_str());
    if let Some(model) = writers.iter().filter(fit).find(is_loaded) {
        return Some(of(model, "which is loaded"));
    }
    let model = writers.iter().find(fit)?;
    Some(of(
        model,
        if writers.len() == 1 {
            "the only model installed"
        } else {
            "the newest model installed"
        },
    ))
}

/// Whether a model generates text on the server itself. Servers before 0.30 do not report capabilities; then the
/// model's name decides.
fn can_write(model: &ListedModel) -> bool {
    let by_name = || {
        let name = model.name.to_lowercase();
        !["embed", "bge-", "minilm", "rerank"]
            .iter()
            .any(|part| name.contains(part))
    };
    model.remote.is_none() && model.writes.unwrap_or_else(by_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str, billions: f64) -> ListedModel {
        ListedModel {
            name: name.to_owned(),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "small and positive"
            )]
            parameters: Some((billions * 1e9) as u64),
            ..ListedModel::default()
        }
    }

    fn chosen(installed: &[ListedModel], loaded: &[&str]) -> Option<(String, &'static str)> {
        choose(installed, loaded).map(|it| (it.name, it.why))
    }

    #[test]
    fn a_loaded_model_is_preferred_and_a_small_one_is_the_last_resort() {
        let installed = [
            model("smollm2:135m", 0.135),
            model("qwen3:4b", 4.0),
            model("gemma3:12b", 12.2),
        ];
        let is = |name: &str, why| Some((name.to_owned(), why));
        assert_eq!(
            chosen(&installed, &[]),
            is("qwen3:4b", "the newest model installed")
        );
        assert_eq!(
            chosen(&installed, &["gemma3:12b"]),
            is("gemma3:12b", "which is loaded")
        );
        // A loaded small model does not replace a larger one.
        assert_eq!(
            chosen(&installed, &["smollm2:135m"]),
            is("qwen3:4b", "the newest model installed")
        );
        assert_eq!(
            chosen(&installed[..1], &[]),
            is("smollm2:135m", "the only model installed")
        );
        assert_eq!(chosen(&[], &["x"]), None);
    }

    #[test]
    fn models_that_cannot_write_locally_are_never_chosen() {
        let remote = ListedModel {
            remote: Some("ollama.com".to_owned()),
            ..model("big:cloud", 480.0)
        };
        let embeds = ListedModel {
            writes: Some(false),
            ..model("new:8b", 8.0)
        };
        let by_name = model("nomic-embed-text", 0.137);
        assert_eq!(chosen(&[remote, embeds, by_name], &["big:cloud"]), None);
        // Reported capabilities override the name.
        let odd = ListedModel {
            writes: Some(true),
            ..model("embedded-writer", 3.0)
        };
        assert!(chosen(&[odd], &[]).is_some());
    }
}
