use serde::Serialize;

use super::table::settings;

/// When the outcome of a task or a plan counts as a success.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ReflectionCriteria {
    /// The least share of a plan's tasks that must succeed, 0 to 1.
    pub min_success_rate: f64,
    /// How many times as long as expected a task may take; above 0.
    pub max_execution_time_multiplier: f64,
    /// Whether a plan in which a task was not run to its end is no success.
    pub require_all_tasks_complete: bool,
    /// Whether outputs are looked at: one that is empty is an issue.
    pub check_output_quality: bool,
}

impl Default for ReflectionCriteria {
    fn default() -> Self {
        ReflectorSettings::default().criteria()
    }
}

settings! {
/// What a layer sets of [`ReflectionCriteria`]. As in [`LoopSettings`](super::LoopSettings), every field is optional.
#[derive(Copy)]
#[command(next_help_heading = "Criteria")]
pub struct ReflectorSettings {
    /// The least share of a plan's tasks that must succeed, 0 to 1. Default: 0.8.
    #[arg(long, value_name = "RATE")]
    #[arg(help = "The least share of the tasks that must succeed, 0 to 1 [default: 0.8]")]
    pub min_success_rate: Option<f64> from 0 to 1 = 0.8,
    /// How many times as long as expected a task may take; above 0. Default: 2.
    #[schemars(extend("exclusiveMinimum" = 0))]
    #[arg(long, value_name = "TIMES")]
    #[arg(help = "How many times as long as expected a task may take [default: 2]")]
    pub max_execution_time_multiplier: Option<f64> = 2.0,
    /// Whether a plan in which a task was not run to its end is no success. Default: true.
    #[arg(long, value_name = "BOOL")]
    #[arg(help = "Whether a plan is no success in which a task was not run to its end [default: true]")]
    pub require_all_tasks_complete: Option<bool> = true,
    /// Whether an empty output is an issue. Default: true.
    #[arg(long, value_name = "BOOL")]
    #[arg(help = "Whether an empty output is an issue [default: true]")]
    pub check_output_quality: Option<bool> = true,
}
}

impl ReflectorSettings {
    /// Says which value is outside of its range: its key, and a sentence about what is wrong.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        self.check_ranges()?;
        // Written so that NaN is wrong, too.
        if (self.max_execution_time_multiplier)
            .is_some_and(|times| !(times > 0.0 && times.is_finite()))
        {
            let message = "`max_execution_time_multiplier` must be a number above 0".to_owned();
            return Err(("max_execution_time_multiplier", message));
        }
        Ok(())
    }

    /// The criteria, with the defaults where nothing is set.
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
    fn what_is_not_set_has_its_default() {
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
    fn values_outside_of_their_range_are_named() {
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
