//! Defines a table of settings: each setting once, with its key, type, range, default and flag.

use std::fmt::Display;
use std::str::FromStr;

#[cfg(feature = "clap")]
use clap::builder::{PossibleValuesParser, TypedValueParser};
#[cfg(feature = "clap")]
use serde::de::DeserializeOwned;
#[cfg(feature = "clap")]
use serde::de::value::{Error as ValueError, StringDeserializer};

/// A setting whose flag takes no value: `--x` sets it, `--no-x` clears it. It has a name of its own because clap's derive
/// expects a value for an `Option`.
pub type Switch<T> = Option<T>;

/// What the parser of a [`Switch`] reads if its opposite flag was given.
#[cfg(feature = "clap")]
pub const OPPOSITE: &str = "opposite";

/// The range of a numeric setting.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    min: f64,
    max: Option<f64>,
}

/// The type of a numeric setting.
pub trait Number: Copy + Into<f64> + FromStr<Err: Display> {
    /// Whether it holds integers.
    const WHOLE: bool;
}

impl Number for u32 {
    const WHOLE: bool = true;
}

impl Number for f64 {
    const WHOLE: bool = false;
}

impl Range {
    /// Returns the range from `min` upwards.
    pub fn from(min: impl Into<f64>) -> Self {
        let min = min.into();
        Self { min, max: None }
    }

    /// Ends the range at `max`, inclusive.
    #[must_use]
    pub fn to(self, max: impl Into<f64>) -> Self {
        let max = Some(max.into());
        Self { max, ..self }
    }

    /// Returns the number, or why it is out of range, in a sentence that begins with `subject`.
    pub fn check<T: Number>(self, subject: &str, number: T) -> Result<T, String> {
        let Self { min, max } = self;
        let value: f64 = number.into();
        // Written so that NaN is outside.
        if value >= min && max.is_none_or(|max| value <= max) {
            return Ok(number);
        }
        Err(self.message::<T>(subject))
    }

    /// Returns a parser for the value of a flag.
    #[cfg(feature = "clap")]
    pub fn parser<T>(self) -> impl Fn(&str) -> Result<T, String> + Clone
    where
        T: Number,
    {
        move |text| match text.parse() {
            Ok(number) => self.check("it", number),
            // "number too large to fit" says more than the range.
            Err(error) if T::WHOLE => Err(error.to_string()),
            Err(_) => Err(self.message::<T>("it")),
        }
    }

    fn message<T: Number>(self, subject: &str) -> String {
        let Self { min, max } = self;
        match max {
            Some(max) if T::WHOLE => format!("{subject} must be from {min} to {max}"),
            Some(max) => format!("{subject} must be a number from {min} to {max}"),
            None => format!("{subject} must be at least {min}"),
        }
    }
}

/// Parses one of the names that a type has in JSON.
#[cfg(feature = "clap")]
pub fn word<T>(words: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words.iter().copied())
        .try_map(|text| T::deserialize(StringDeserializer::<ValueError>::new(text)))
}

/// Reads a flag without a value: the flag sets `value`, its opposite (if the program defines one) the other value.
#[cfg(feature = "clap")]
pub fn switch(value: bool) -> impl Fn(&str) -> Result<Switch<bool>, String> + Clone {
    move |given| {
        Ok(match given {
            "true" => Some(value),
            OPPOSITE => Some(!value),
            _ => None,
        })
    }
}

/// Defines a table of settings. A field is written as
///
/// ```text
/// /// What the configuration file's JSON Schema says about it.
/// #[arg(long, help = "What `--help` says about it [default: 0.1]")]
/// pub confirm: Option<f64> from 0 to 1 = 0.1,
/// ```
///
/// where the range and the default are optional. Every field is an `Option`, because each layer (flags, environment,
/// criteria file, profile, configuration file) sets only some. The table gets
///
/// - serde's keys, the JSON Schema and, with the feature `clap`, flags;
/// - `or`, which lays one layer over another;
/// - `defaults`, the layer below all others, and for each setting with a default a method of its name, which returns
///   the default where no layer sets a value;
/// - `check_ranges`. Flags out of range are rejected when they are parsed.
macro_rules! settings {
    (
        $(#[doc = $table_doc:expr])*
        $(#[derive($derived:ident)])?
        $(#[command($($command:tt)*)])?
        pub struct $table:ident {
            $(
                $(#[doc = $doc:expr])*
                $(#[schemars($($schema:tt)*)])?
                $(#[serde($($serde:tt)*)])?
                $(#[arg($($arg:tt)*)])*
                pub $field:ident: $optional:ident<$type:ty>
                    $(from $min:tt $(to $max:tt)?)? $(= $default:expr)?,
            )*
        }
    ) => {
        #[derive(Debug, Clone, PartialEq, Default)]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[cfg_attr(feature = "clap", derive(clap::Args))]
        #[serde(default, deny_unknown_fields)]
        $(#[derive($derived)])?
        $(#[doc = $table_doc])*
        $(#[cfg_attr(feature = "clap", command($($command)*))])?
        pub struct $table {
            $(
                $(#[doc = $doc])*
                $(#[schemars($($schema)*)])?
                $(#[serde($($serde)*)])?
                $(#[cfg_attr(feature = "clap", arg($($arg)*))])*
                $(
                    #[schemars(range(min = $min $(, max = $max)?))]
                    #[cfg_attr(
                        feature = "clap",
                        arg(value_parser = $crate::types::table::Range::from($min)$(.to($max))?.parser::<$type>())
                    )]
                )?
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $field: $optional<$type>,
            )*
        }

        impl $table {
            /// Returns the built-in defaults. A setting without a default is not set.
            pub fn defaults() -> Self {
                Self { $( $field: None$(.or(Some($default)))?, )* }
            }

            /// Returns this layer, with missing values taken from `below`.
            #[must_use]
            pub fn or(self, below: &Self) -> Self {
                Self { $( $field: self.$field.or_else(|| below.$field.clone()), )* }
            }

            /// Returns the key of the first value out of range, and what is wrong with it.
            fn check_ranges(&self) -> Result<(), (&'static str, String)> {
                $($(
                    if let Some(value) = self.$field {
                        let subject = concat!("`", stringify!($field), "`");
                        $crate::types::table::Range::from($min)$(.to($max))?
                            .check(subject, value)
                            .map_err(|message| (stringify!($field), message))?;
                    }
                )?)*
                Ok(())
            }

            $($(
                #[doc = concat!("`", stringify!($field), "`, or its default if it is not set.")]
                pub fn $field(&self) -> $type {
                    self.$field.unwrap_or($default)
                }
            )?)*
        }
    };
}

pub(super) use settings;

#[cfg(test)]
#[cfg(feature = "clap")]
mod tests {
    use clap::{Args, Command, FromArgMatches as _};
    use serde::Serialize;
    use serde_json::Value;

    use crate::types::{JudgeSettings, LoopSettings, ReflectorSettings};

    /// How many flags of a table name their default in their help; all of them must name the right one.
    fn named_defaults<T: Args + Serialize>(defaults: &T) -> usize {
        let defaults = serde_json::to_value(defaults).unwrap();
        let command = T::augment_args(Command::new("test"));
        let named = command.get_arguments().filter_map(|arg| {
            let help = arg.get_help().unwrap().to_string();
            let named = help.strip_suffix(']')?.rsplit_once("[default: ")?.1;
            let is_right = match &defaults[arg.get_id().as_str()] {
                // It has none here: that of the criteria holds.
                Value::Null => named.starts_with("the criteria's own"),
                Value::Number(number) => named.parse().ok() == number.as_f64(),
                Value::String(text) => named == text,
                Value::Bool(value) => named.parse() == Ok(*value),
                Value::Array(_) | Value::Object(_) => false,
            };
            assert!(is_right, "{}: {named}", arg.get_id());
            Some(())
        });
        named.count()
    }

    #[test]
    fn help_names_the_defaults() {
        assert_eq!(named_defaults(&LoopSettings::defaults()), 12);
        assert_eq!(named_defaults(&JudgeSettings::defaults()), 4);
        assert_eq!(named_defaults(&ReflectorSettings::defaults()), 2);
    }

    #[test]
    fn a_flag_sets_its_setting_and_no_other() {
        let read = |line: &[&str]| {
            let command = JudgeSettings::augment_args(Command::new("test").no_binary_name(true));
            let matches = command
                .try_get_matches_from(line)
                .map_err(|error| error.to_string())?;
            Ok(JudgeSettings::from_arg_matches(&matches).unwrap())
        };
        let none = JudgeSettings::default;
        assert_eq!(read(&[]), Ok(none()));
        let set = JudgeSettings {
            samples: Some(16),
            cache: Some(false),
            ..none()
        };
        assert_eq!(read(&["--judge-samples=16", "--no-cache"]), Ok(set));
        for (line, message) in [
            ("--judge-samples=17", "it must be from 1 to 16"),
            ("--judge-samples=some", "invalid digit found in string"),
            ("--judge-confirm=nan", "it must be a number from 0 to 1"),
            ("--judge-mode=both", "[possible values: joint, separate]"),
        ] {
            let error: String = read(&[line]).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
