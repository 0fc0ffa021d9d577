#[cfg(feature = "clap")]
use clap::ArgAction;
use serde::Serialize;

#[cfg(feature = "clap")]
use super::table::switch;
use super::table::{Switch, settings};

/// When the outcome of a task or a plan counts as a success.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ReflectionCriteria {
    /// The minimum share of a plan's tasks that must succeed, 0 to 1.
    pub min_success_rate: f64,
    /// How many times as long as expected a task may take; above 0.
    pub max_execution_time_multiplier: f64,
    /// Whether a plan with an unfinished task fails.
    pub require_all_tasks_complete: bool,
    /// Whether an empty output is an issue.
    pub check_output_quality: bool,
}

impl Default for ReflectionCriteria {
    fn default() -> Self {
        ReflectorSettings::default().criteria()
    }
}

settings! {
/// The [`ReflectionCriteria`] that one layer sets. As in [`LoopSettings`](super::LoopSettings), every field is optional.
#[derive(Copy)]
#[command(next_help_heading = "Criteria")]
pub struct ReflectorSettings {
    /// The minimum share of a plan's tasks that must succeed, 0 to 1. Default: 0.8.
    #[arg(long, value_name = "RATE")]
    #[arg(help = "Share of the tasks that must succeed, 0 to 1 [default: 0.8]")]
    pub min_success_rate: Option<f64> from 0 to 1 = 0.8,
    /// How many times as long as expected a task may take; above 0. Default: 2.
    #[schemars(extend("exclusiveMinimum" = 0))]
    #[arg(long, value_name = "TIMES", hide_short_help = true)]
    #[arg(help = "How many times as long as expected a task may take [default: 2]")]
    pub max_execution_time_multiplier: Option<f64> = 2.0,
    /// Whether a plan with an unfinished task fails. Default: true.
    #[arg(long = "no-require-all-tasks-complete", hide_short_help = true)]
    #[arg(action = ArgAction::SetTrue, value_parser = switch(false))]
    #[arg(help = "Let a plan succeed even if a task did not finish")]
    pub require_all_tasks_complete: Switch<bool> = true,
    /// Whether an empty output is an issue. Default: true.
    #[arg(long = "no-check-output-quality", hide_short_help = true)]
    #[arg(action = ArgAction::SetTrue, value_parser = switch(false))]
    #[arg(help = "Do not report empty outputs")]
    pub check_output_quality: Switch<bool> = true,
}
}

impl ReflectorSettings {
    /// Returns the key of the first value out of range, and what is wrong with it.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        self.check_ranges()?;
        // Written so that NaN fails.
        if (self.max_execution_time_multiplier)
            .is_some_and(|times| !(times > 0.0 && times.is_finite()))
        {
            let message = "`max_execution_time_multiplier` must be above 0".to_owned();
            return Err(("max_execution_time_multiplier", message));
        }
        Ok(())
    }

    /// The criteria, with defaults for everything that is not set.
    pub fn criteria(&self) -> ReflectionCriteria {
        ReflectionCriteria {
            min_success_rate: self.min_success_rate(),
            max_execution_time_multiplier: self.max_execution_time_multiplier(),
            require_all_tasks_complete: self.require_all_tasks_complete(),
            check_output_quality: self.check_output_quality(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_fields_have_defaults() {
        assert_eq!(
            ReflectorSettings::default().criteria(),
            ReflectionCriteria::default()
        );
        assert_eq!(
            ReflectorSettings::defaults().criteria(),
            ReflectionCriteria::default()
        );
        let some = ReflectorSettings {
            min_success_rate: Some(0.75),
            check_output_quality: Some(false),
            ..ReflectorSettings::default()
        };
        let criteria = some.criteria();
        assert!((criteria.min_success_rate - 0.75).abs() < f64::EPSILON);
        assert!(criteria.require_all_tasks_complete && !criteria.check_output_quality);
    }

    #[test]
    fn out_of_range_values_are_rejected() {
        for (rate, times, key) in [
            (1.1, 2.0, "min_success_rate"),
            (f64::NAN, 2.0, "min_success_rate"),
            (0.5, 0.0, "max_execution_time_multiplier"),
            (0.5, f64::NAN, "max_execution_time_multiplier"),
        ] {
            let settings = ReflectorSettings {
                min_success_rate: Some(rate),
                max_execution_time_multiplier: Some(times),
                ..ReflectorSettings::default()
            };
            assert_eq!(settings.check().unwrap_err().0, key);
        }
        assert!(ReflectorSettings::defaults().check().is_ok());
    }
}
