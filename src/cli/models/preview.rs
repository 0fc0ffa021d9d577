use super::choose::{self, Said};
use super::connect::Providers;
use super::name::{ModelName, Written};
use super::trust::NamedBy;
use crate::cli::error::CliError;
use crate::cli::settings::Plan;

/// The models of a run, as far as they are known without network calls.
pub(in crate::cli) struct ModelPreview {
    /// The writer, with the reason; `None` if it is chosen when the run starts.
    pub(in crate::cli) writer: Option<(ModelName, String)>,
    /// Whether the user's address applies to it.
    #[cfg(feature = "restate")]
    pub(in crate::cli) at_given_address: bool,
    /// The writer's model name, if its provider is chosen when the run starts.
    pub(in crate::cli) wanted: Option<String>,
    /// The judge, as written; `None` if it is the writer.
    pub(in crate::cli) judge: Option<String>,
    /// The stronger model, as written, if there is one.
    pub(in crate::cli) stronger: Option<String>,
}

/// Returns the models that a run would use, without contacting servers or looking up keys.
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
