//! Score curves of seven shapes: when the loop should stop.

use fastrand::Rng;

use crate::play::{GOAL, Summary, criteria, drafts, play};
use crate::world::{Noise, SHAPES, World, curve};

/// Returns this many curves of each shape.
fn worlds(each: usize, seed: u64) -> Vec<World> {
    let mut rng = Rng::with_seed(seed);
    let all = SHAPES.iter().flat_map(|shape| vec![*shape; each]);
    all.map(|shape| World::Curve(curve(shape, &mut rng)))
        .collect()
}

fn reflect(sigma: f64, most: u32, each: usize, seed: u64) -> Summary {
    let noise = Noise {
        sigma,
        ..Noise::default()
    };
    let runs = play(
        &worlds(each, seed),
        noise,
        &criteria(GOAL),
        &drafts(most),
        seed,
    );
    Summary::of(&runs, GOAL, 0.005)
}

#[test]
fn runs_do_not_stop_before_a_better_draft() {
    for (sigma, early, worse) in [(0.0, 0.02, 0.0), (0.1, 0.1, 0.12)] {
        let summary = reflect(sigma, 5, 20, 1);
        assert!(summary.early <= early, "{sigma}: {summary}");
        assert!(summary.worse <= worse, "{sigma}: {summary}");
    }
}

#[test]
#[ignore = "prints tables"]
fn table() {
    for sigma in [0.0, 0.1] {
        for most in [5, 8] {
            for seed in 1..=3 {
                let reflect = reflect(sigma, most, 100, seed);
                println!("σ {sigma:.2} n {most} seed {seed} {reflect}");
            }
        }
    }
}
