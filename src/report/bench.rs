//! Reports on benchmarks.

use std::fmt::Write as _;

use super::json::pretty;
use super::text::{duration, thousands};
use crate::bench::{ArmSummary, Comparison, Share, Summary, judging};
use crate::text::counted;

/// The columns of the table.
const COLUMNS: [&str; 11] = [
    "arm",
    "tasks met",
    "checks met",
    "reflect better/worse",
    "calls",
    "prompt",
    "cached",
    "output",
    "cost",
    "total",
    "time",
];

/// Formats the summary as one JSON object, indented, with a final newline.
pub fn bench_json(summary: &Summary) -> String {
    pretty(summary)
}

/// Formats the summary as text: the verdict, the setup and the table.
pub fn bench_text(summary: &Summary) -> String {
    let rows = table(summary);
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let mut out = format!("{}\n\n{}\n\n", summary.verdict, about(summary));
    for row in &rows {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let pad = " ".repeat(width(column) - cell.chars().count());
            // Align names to the left and numbers to the right.
            if column < 4 {
                format!("{cell}{pad}")
            } else {
                format!("{pad}{cell}")
            }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        out.push_str(line.trim_end());
        out.push('\n');
    }
    for line in notes(summary) {
        let _ = write!(out, "\n{line}\n");
    }
    out
}

/// Formats the summary as Markdown, for a pull request or an issue.
pub fn bench_markdown(summary: &Summary) -> String {
    let mut out = format!("**{}**\n\n{}\n\n", summary.verdict, about(summary));
    for (number, row) in table(summary).iter().enumerate() {
        let _ = writeln!(out, "| {} |", row.join(" | "));
        if number == 0 {
            let rule = |column| if column < 4 { "---" } else { "---:" };
            let rules: Vec<&str> = (0..COLUMNS.len()).map(rule).collect();
            let _ = writeln!(out, "| {} |", rules.join(" | "));
        }
    }
    for line in notes(summary) {
        let _ = write!(out, "\n{line}\n");
    }
    out
}

/// Describes the setup on one line.
pub(super) fn about(summary: &Summary) -> String {
    let mut out = format!(
        "{} × {}",
        counted(summary.tasks, "task"),
        counted(summary.seeds.len(), "seed")
    );
    match summary.budget {
        Some(budget) => {
            let _ = write!(out, "; at most {} total tokens per task", thousands(budget));
        }
        None => out.push_str("; best-of-n and append-loop get the tokens that reflect used"),
    }
    if summary.holdout > 0 {
        let checks = counted(summary.holdout, "check");
        let _ = write!(out, "; {checks} of each task hidden from the arms");
    }
    out.push_str("; calls, tokens and time are means per trial");
    out
}

/// Returns notes on the figures.
pub(super) fn notes(summary: &Summary) -> Vec<String> {
    let mut notes = Vec::new();
    if summary.left_out > 0 {
        notes.push(format!(
            "{} trials have no verdict and are excluded.",
            summary.left_out
        ));
    }
    notes
}

/// Returns the table: a header, then a row for each arm.
pub(super) fn table(summary: &Summary) -> Vec<Vec<String>> {
    let head = COLUMNS.map(str::to_owned).to_vec();
    let rows = summary.arms.iter().map(|arm| {
        let against = summary.comparisons.iter().find(|it| it.against == arm.arm);
        row(arm, against)
    });
    std::iter::once(head).chain(rows).collect()
}

fn row(arm: &ArmSummary, against: Option<&Comparison>) -> Vec<String> {
    let share = |Share { met, of }: Share, percent: f64| format!("{met}/{of} {percent:.0} %");
    let checks = if arm.checks.of == 0 {
        "–".to_owned()
    } else {
        let of = |n: usize| u32::try_from(n).map_or(f64::NAN, f64::from);
        share(arm.checks, 100.0 * of(arm.checks.met) / of(arm.checks.of))
    };
    let known = |tokens: Option<f64>| tokens.map_or("–".to_owned(), rounded);
    vec![
        arm.arm.as_str().to_owned(),
        format!(
            "{} ({:.0}–{:.0})",
            share(arm.tasks, 100.0 * arm.met.estimate),
            100.0 * arm.met.low,
            100.0 * arm.met.high
        ),
        checks,
        against.map_or(String::new(), compared),
        format!("{:.1}", arm.calls),
        known(arm.prompt),
        known(arm.cached),
        known(arm.output),
        rounded(arm.cost_tokens),
        rounded(arm.total_tokens),
        duration(arm.seconds),
    ]
}

fn compared(with: &Comparison) -> String {
    format!(
        "{}/{}, {:+.0} points ({:.0} to {:.0}), p {:.3}",
        with.better,
        with.worse,
        100.0 * with.difference.estimate,
        100.0 * with.difference.low,
        100.0 * with.difference.high,
        with.p
    )
}

fn rounded(tokens: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "tokens are counted from 0"
    )]
    thousands(tokens.round() as u64)
}

/// Formats a report on a judge as text: the verdict, then the figures of each mode.
pub fn judging_text(report: &judging::Report) -> String {
    let mut out = format!("{}\n", report.verdict);
    let known = |value: Option<f64>| value.map_or("–".to_owned(), |it| format!("{it:.2}"));
    for trust in &report.modes {
        let _ = write!(
            out,
            "\n{}: {} texts, {} unreadable, {} tokens a verdict\n  agreement {:.0} %, κ {}, rank correlation {}, \
             false passes {}\n  repeated {}, padded {}\n",
            trust.mode.as_str(),
            trust.texts,
            trust.unreadable,
            rounded(trust.cost_tokens),
            100.0 * trust.accuracy,
            known(trust.kappa),
            known(trust.spearman),
            known(trust.false_pass_rate),
            trust
                .repeat_difference
                .map_or("–".to_owned(), |it| format!("±{it:.2}")),
            trust
                .length_bias
                .map_or("–".to_owned(), |it| format!("{it:+.2}"))
        );
        let judging::Confusion {
            true_pass,
            false_pass,
            false_fail,
            true_fail,
        } = trust.confusion;
        let _ = writeln!(
            out,
            "  judge passes: {true_pass} good, {false_pass} bad; judge fails: {false_fail} good, {true_fail} bad"
        );
        if let Some(best) = trust.best_threshold {
            let _ = writeln!(
                out,
                "  best threshold {}: κ {:.2}, false passes {}",
                best.score,
                best.kappa,
                known(best.false_pass_rate)
            );
        }
    }
    if let Some(pairs) = report.pairs {
        let _ = writeln!(
            out,
            "\npairs, each in both orders: {} right, {} wrong, {} undecided or changed with the order, {} unreadable",
            pairs.right, pairs.wrong, pairs.undecided, pairs.unreadable
        );
    }
    out
}
