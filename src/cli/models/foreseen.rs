use super::choose::{self, Said};
use super::name::ModelName;
use crate::cli::error::CliError;
use crate::cli::settings::Plan;

/// What can be said of a run's models without asking anybody.
pub(in crate::cli) struct Foreseen {
    /// The model that writes, with why; `None` if that is found out when the run starts.
    pub(in crate::cli) writer: Option<(ModelName, String)>,
    /// Whether it is at the address that the user gives.
    #[cfg(feature = "restate")]
    pub(in crate::cli) at_given_address: bool,
    /// The name of the model that writes, where its provider is found out when the run starts.
    pub(in crate::cli) wanted: Option<String>,
    /// The model that judges, as it is written; `None` if it is the one that writes.
    pub(in crate::cli) judge: Option<String>,
    /// The model that takes over where there is no progress, as it is written, if there is one.
    pub(in crate::cli) stronger: Option<String>,
}

/// Says which models a run would use. Looks for no server, and for no key.
pub(in crate::cli) fn foresee(plan: &Plan) -> Result<Foreseen, CliError> {
    let said = choose::said(plan)?;
    #[cfg(feature = "restate")]
    let at_given_address = matches!(&said, Said::Provider(chosen) if chosen.at_given_address);
    let (writer, wanted) = match said {
        Said::Provider(chosen) => (Some((chosen.name, chosen.why)), None),
        Said::Model(name) => (None, name),
    };
    let settings = plan.settings();
    let beside = |text: &Option<String>| {
        let text = text.as_ref()?;
        let Some((writer, _)) = &writer else {
            return Some(text.clone());
        };
        let name = choose::beside(text, &plan.config, writer);
        (name != *writer).then(|| name.to_string())
    };
    Ok(Foreseen {
        judge: beside(&settings.judge_model),
        stronger: beside(&settings.stronger_model),
        writer,
        #[cfg(feature = "restate")]
        at_given_address,
        wanted,
    })
}
