//! Recorded runs: drafts of a real model, with their true scores.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::play::{Summary, criteria, drafts, play};
use crate::world::{Noise, World};

#[derive(Deserialize)]
struct Row {
    model: String,
    drafts: Vec<Draft>,
}

#[derive(Deserialize)]
struct Draft {
    text: String,
    score: f64,
}

/// Returns the runs in the file named by the environment, by model. `stretch` maps the upper half of the
/// scale to the whole scale, i.e. how far a text is above neutral.
fn recorded(stretch: bool) -> BTreeMap<String, Vec<World>> {
    let mut all: BTreeMap<String, Vec<World>> = BTreeMap::new();
    let Some(file) = std::env::var_os("REFLECT_SIM_REPLAY") else {
        return all;
    };
    for line in std::fs::read_to_string(file).unwrap().lines() {
        let row: Row = serde_json::from_str(line).unwrap();
        let score = |score: f64| {
            if stretch {
                (2.0 * score - 1.0).max(0.0)
            } else {
                score
            }
        };
        let drafts = row
            .drafts
            .into_iter()
            .map(|draft| (draft.text, score(draft.score)));
        all.entry(row.model)
            .or_default()
            .push(World::Recorded(drafts.collect()));
    }
    all
}

#[test]
#[ignore = "prints tables; needs REFLECT_SIM_REPLAY"]
fn table() {
    for stretch in [false, true] {
        for (model, worlds) in recorded(stretch) {
            for (sigma, most, goal) in [
                (0.0, 3, 0.8),
                (0.0, 5, 0.97),
                (0.0, 4, 0.98),
                (0.0, 5, 0.98),
                (0.1, 5, 0.97),
                (0.1, 5, 0.98),
            ] {
                let noise = Noise {
                    sigma,
                    ..Noise::default()
                };
                let runs = play(&worlds, noise, &criteria(goal), &drafts(most), 1);
                let reflect = Summary::of(&runs, goal, 0.005);
                println!(
                    "{model:8} {} σ {sigma:.1} n {most} goal {goal:.2} {reflect}",
                    if stretch { "stretched" } else { "as given " }
                );
            }
        }
    }
}
