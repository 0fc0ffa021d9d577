//! Plays many runs of the loop, and of the simple loops to compare with.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use fastrand::Rng;
use reflect::engine::Loop;
use reflect::types::{Criteria, LoopSettings, Stamped, Task};
use tokio_util::sync::CancellationToken;

use crate::model::{Asked, SimModel};
use crate::world::{Noise, TASK, World, clip, gauss};

/// The passing score in every world except the recorded one.
pub const GOAL: f64 = 0.85;

/// The result of a run.
#[derive(Debug, Clone)]
pub struct Played {
    /// The true quality of the first draft and of the answer.
    pub first: f64,
    pub got: f64,
    pub asked: Asked,
    pub reason: String,
    /// Whether the run stopped although a later draft within its limit would have been clearly better.
    pub early: bool,
}

/// The criteria of every world: one judge with a score from 0 to 1.
pub fn criteria(goal: f64) -> Criteria {
    let text = format!(
        "name = 'q'\nthreshold = {goal}\n[[criteria]]\nname = 'quality'\ndescription = 'The report is good.'\n\
         threshold = 0.0\nprompt = 'How good is it?'\nscale = [0, 1]\n"
    );
    reflect::criteria::parse(&text, "sim.toml").unwrap()
}

/// Returns the settings with at most this many drafts.
pub fn drafts(most: u32) -> LoopSettings {
    LoopSettings {
        max_iterations: Some(most),
        ..LoopSettings::default()
    }
}

/// Runs the loop once in each world. Each run has its own seed, derived from `seed` and its position.
pub fn play(
    worlds: &[World],
    noise: Noise,
    criteria: &Criteria,
    settings: &LoopSettings,
    seed: u64,
) -> Vec<Played> {
    let criteria = Arc::new(criteria.clone());
    let half = worlds.len().div_ceil(2).max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = worlds
            .chunks(half)
            .zip(0u64..)
            .map(|(worlds, chunk)| {
                let criteria = Arc::clone(&criteria);
                scope.spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_time()
                        .build()
                        .unwrap();
                    let first = chunk * half as u64;
                    let runs = worlds.iter().zip(first..).map(|(world, place)| {
                        let seed = seed.wrapping_mul(1_000_003).wrapping_add(place);
                        let model = SimModel::new(world.clone(), noise, seed);
                        runtime.block_on(run(&model, world, &criteria, settings))
                    });
                    runs.collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    })
}

async fn run(
    model: &Arc<SimModel>,
    world: &World,
    criteria: &Arc<Criteria>,
    settings: &LoopSettings,
) -> Played {
    let plan = Loop::builder(Arc::clone(model) as _, Arc::clone(criteria))
        .settings(settings.clone())
        .build()
        .unwrap();
    let (mut observer, cancel) = (|_: &Stamped| {}, CancellationToken::new());
    let record = plan.run(&Task::new(TASK), &mut observer, &cancel).await;
    let answer = record
        .selected()
        .map_or("", |version| version.output.as_str());
    let (got, asked) = (world.truth(answer), model.asked());
    let most = settings.max_iterations() as usize;
    let early = match world {
        World::Curve(scores) => {
            let later = scores.iter().take(most).skip(asked.drafts);
            got < criteria.threshold && later.into_iter().any(|score| *score > got + 0.05)
        }
        _ => false,
    };
    Played {
        first: model.first(),
        got,
        asked,
        reason: record
            .convergence_reason
            .map_or_else(String::new, |reason| format!("{reason:?}")),
        early,
    }
}

/// The means of many runs.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    pub runs: usize,
    pub first: f64,
    pub got: f64,
    /// Shares, 0 to 1.
    pub met: f64,
    pub worse: f64,
    pub early: f64,
    pub drafts: f64,
    pub calls: f64,
    pub tokens: f64,
    pub reasons: BTreeMap<String, usize>,
}

impl Summary {
    /// `worse` counts answers more than `margin` below the first draft.
    pub fn of(runs: &[Played], goal: f64, margin: f64) -> Self {
        let count = runs.len().max(1) as f64;
        let mean = |value: fn(&Played) -> f64| runs.iter().map(value).sum::<f64>() / count;
        let share =
            |is: &dyn Fn(&Played) -> bool| runs.iter().filter(|run| is(run)).count() as f64 / count;
        let mut reasons = BTreeMap::new();
        for run in runs {
            *reasons.entry(run.reason.clone()).or_default() += 1;
        }
        Self {
            runs: runs.len(),
            first: mean(|run| run.first),
            got: mean(|run| run.got),
            met: share(&|run| run.got >= goal),
            worse: share(&|run| run.got < run.first - margin - 1e-9),
            early: share(&|run| run.early),
            drafts: mean(|run| run.asked.drafts as f64),
            calls: mean(|run| run.asked.calls() as f64),
            tokens: mean(|run| (run.asked.prompt + run.asked.output) as f64),
            reasons,
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Two standard errors of the share that meets the criteria.
        let error = 200.0 * (self.met * (1.0 - self.met) / self.runs.max(1) as f64).sqrt();
        write!(
            f,
            "first {:.3} got {:.4} met {:.1} ±{error:.1} % worse {:.1} % early {:.1} % drafts {:.2} calls {:.2} \
             tokens {:.0} {:?}",
            self.first,
            self.got,
            100.0 * self.met,
            100.0 * self.worse,
            100.0 * self.early,
            self.drafts,
            self.calls,
            self.tokens,
            self.reasons
        )
    }
}

/// A simple loop: judge, revise the best draft, keep the better one, stop at a pass. The writer rewrites.
/// `cost` is the tokens of a first draft, of a revision and of a verdict.
pub fn keep_best(
    worlds: &[World],
    noise: Noise,
    most: usize,
    cost: [f64; 3],
    seed: u64,
) -> Summary {
    let mut rng = Rng::with_seed(seed);
    let (mut met, mut got, mut tokens, mut drafts) = (0.0, 0.0, 0.0, 0.0);
    for world in worlds {
        let World::Process(process) = world else {
            continue;
        };
        let score = |bad: &[bool], rng: &mut Rng| {
            let sound = bad.iter().filter(|bad| !**bad).count() as f64 / bad.len() as f64;
            (sound, clip(sound + noise.bias + noise.sigma * gauss(rng)))
        };
        let mut best: Vec<bool> = (0..crate::world::PARTS)
            .map(|_| rng.f64() < process.p_bad)
            .collect();
        let (mut truth, mut mark) = score(&best, &mut rng);
        drafts += 1.0;
        tokens += cost[0] + cost[2];
        for _ in 1..most {
            if mark >= GOAL {
                break;
            }
            let new: Vec<bool> = best
                .iter()
                .map(|bad| {
                    if *bad {
                        rng.f64() >= process.p_fix
                    } else {
                        rng.f64() < process.p_break
                    }
                })
                .collect();
            drafts += 1.0;
            tokens += cost[1] + cost[2];
            let (new_truth, new_mark) = score(&new, &mut rng);
            if new_mark > mark {
                (best, truth, mark) = (new, new_truth, new_mark);
            }
        }
        met += f64::from(u8::from(truth >= GOAL));
        got += truth;
    }
    let runs = worlds.len() as f64;
    Summary {
        runs: worlds.len(),
        got: got / runs,
        met: met / runs,
        tokens: tokens / runs,
        drafts: drafts / runs,
        calls: 2.0 * drafts / runs,
        ..Summary::default()
    }
}
