use super::choose::{self, Said};
use super::connect::Providers;
use super::name::{ModelName, Written};
use super::trust::NamedBy;
use crate::cli::error::CliError;
use crate::cli::settings::Plan;

/// What can be said of a run's models without asking anybody.
pub(in crate::cli) struct ModelPreview {
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
pub(in crate::cli) fn preview(plan: &Plan) -> Result<ModelPreview, CliError> {
    let said = choose::said(plan)?;
    #[cfg(feature = "restate")]
    let at_given_address = matches!(&said, Said::Provider(chosen) if chosen.at_given_address);
    let settings = plan.settings();
    let mut providers = Providers::new(&plan.config, settings);
    let (writer, wanted) = match said {
        Said::Provider(chosen) => {
            if chosen.at_given_address {
                providers = providers.with_given_address(&chosen.name.provider);
            }
            providers.permit(&chosen.name)?;
            (Some((chosen.name, chosen.why)), None)
        }
        Said::Model(wanted) => (None, wanted.model),
    };
    let beside = |text: &Option<String>, key| {
        let Some(text) = text else {
            return Ok(None);
        };
        let by = NamedBy::setting(plan.resolved.origin(key), &plan.config);
        let Some((writer, _)) = &writer else {
            let written = Written::read(text, by, &plan.config);
            if let Some(provider) = written.provider {
                let (model, by) = (written.model, written.by);
                providers.permit(&ModelName {
                    provider,
                    model,
                    by,
                })?;
            }
            return Ok(Some(text.clone()));
        };
        let name = choose::beside(text, by, &plan.config, writer);
        providers.permit(&name)?;
        Ok::<_, CliError>((!name.is(writer)).then(|| name.to_string()))
    };
    Ok(ModelPreview {
        judge: beside(&settings.judge_model, "judge_model")?,
        stronger: beside(&settings.stronger_model, "stronger_model")?,
        writer,
        #[cfg(feature = "restate")]
        at_given_address,
        wanted,
    })
}
