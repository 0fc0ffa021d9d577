//! The HTML report on a benchmark: the table, and a plot of the trials that each arm met over their cost.

use std::fmt::Write as _;

use serde::Serialize;

use super::chart::{Frame, LEFT, figure, height};
use super::fill;
use crate::bench::{ArmSummary, Summary};
use crate::report::bench::{about, notes, table};
use crate::report::text::thousands;

/// The width of the plot.
const WIDTH: f64 = 620.0;
/// The space for the names of the arms.
const NAMES: f64 = 100.0;
/// The minimum distance between two names.
const NAME: f64 = 15.0;

/// Formats the report on a benchmark as one HTML file.
pub fn bench_html(summary: &Summary) -> String {
    let page = Page {
        verdict: &summary.verdict,
        about: about(summary),
        plot: Plot::of(&summary.arms),
        table: table(summary),
        notes: notes(summary),
    };
    fill("bench", "Benchmark", &page)
}

#[derive(Debug, Serialize)]
struct Page<'a> {
    verdict: &'a str,
    about: String,
    plot: Plot,
    table: Vec<Vec<String>>,
    notes: Vec<String>,
}

/// A step plot of the share of trials that met all checks, over tokens.
#[derive(Debug, Serialize)]
struct Plot {
    #[serde(flatten)]
    frame: Frame,
    ticks: Vec<Tick>,
    arms: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Tick {
    x: String,
    label: String,
}

#[derive(Debug, Serialize)]
struct Line {
    name: &'static str,
    path: String,
    label_y: String,
}

impl Plot {
    fn of(arms: &[ArmSummary]) -> Self {
        let last = |arm: &ArmSummary| arm.curve.last().map_or(0, |(tokens, _)| *tokens);
        let most = arms.iter().map(last).max().unwrap_or(0).max(1);
        let x = |tokens: u64| LEFT + WIDTH * share(tokens, most);
        let mut lines: Vec<(f64, Line)> = arms
            .iter()
            .map(|arm| {
                let mut path = format!("M{} {}", figure(LEFT), figure(height(0.0)));
                for (tokens, share) in &arm.curve {
                    let _ = write!(path, "H{}V{}", figure(x(*tokens)), figure(height(*share)));
                }
                let _ = write!(path, "H{}", figure(LEFT + WIDTH));
                let end = height(arm.curve.last().map_or(0.0, |(_, share)| *share));
                let line = Line {
                    name: arm.arm.as_str(),
                    path,
                    label_y: String::new(),
                };
                (end, line)
            })
            .collect();
        // Place names from the bottom up, each above the one before.
        lines.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let mut above = f64::INFINITY;
        let arms = lines.into_iter().map(|(end, line)| {
            above = end.min(above - NAME);
            Line {
                label_y: figure(above),
                ..line
            }
        });
        let arms = arms.collect();
        let tick = |tokens: u64| Tick {
            x: figure(x(tokens)),
            label: thousands(tokens),
        };
        Self {
            frame: Frame::new(WIDTH, NAMES, |share| format!("{:.0} %", share * 100.0)),
            ticks: vec![tick(0), tick(most / 2), tick(most)],
            arms,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "no trial has 2^53 tokens")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}
