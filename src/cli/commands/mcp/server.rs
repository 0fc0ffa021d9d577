//! The server: which tools there are, and which call is made.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};

use super::arguments::{ListCall, read, tools};
use super::calls::Calls;
use super::notify::notifying;
use super::outcome;

/// What the client's model learns about the server.
const INSTRUCTIONS: &str = "reflect drafts, revises and evaluates texts against criteria. Call list_criteria first, \
     then draft for a new text, revise for an existing one, or evaluate to judge a text without changing it. \
     `success: false` means that the criteria are not met; `issues` says why.";

pub(super) struct Server {
    calls: Calls,
    tools: Vec<Tool>,
}

impl Server {
    pub(super) fn new(calls: Calls) -> Self {
        Self {
            calls,
            tools: tools(),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("reflect", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (calls, cancel, given) = (&self.calls, &context.ct, request.arguments);
        let name = request.name.as_ref();
        if self.get_tool(name).is_none() {
            let message = format!("no tool named `{name}`");
            return Err(ErrorData::invalid_params(message, None));
        }
        let call = notifying(&context, async |notifier| match name {
            "draft" => calls.draft(read(given)?, notifier, cancel).await,
            "revise" => calls.revise(read(given)?, notifier, cancel).await,
            "evaluate" => calls.evaluate(read(given)?, notifier, cancel).await,
            "show_run" => Calls::show_run(&read(given)?),
            _ => {
                let ListCall {} = read(given)?;
                calls.list_criteria()
            }
        });
        let result = Box::pin(call).await;
        Ok(result.unwrap_or_else(|error| outcome::error(&error)).into())
    }
}
