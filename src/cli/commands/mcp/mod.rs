//! `reflect mcp`: the commands as tools for agents, over the Model Context Protocol on stdin and stdout.

mod arguments;
mod calls;
mod names;
mod notify;
mod outcome;
mod server;

use std::io::{self, IsTerminal as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use rmcp::transport::stdio;
use tokio::io::{AsyncRead, ReadBuf, Stdin};
use tokio::task::LocalSet;
use tokio_util::sync::CancellationToken;

use self::calls::Calls;
use self::server::Server;
use crate::cli::args::{GlobalArgs, McpArgs};
use crate::cli::error::CliError;
use crate::cli::{input, interrupt, printer};
use crate::types::ExitCode;

/// Serves one client until its input ends or a signal comes.
pub(in crate::cli) async fn run(args: &McpArgs, global: &GlobalArgs) -> Result<ExitCode, CliError> {
    input::reserve_stdin("the client's requests");
    let server = Server::new(Calls::new(args, global)?);
    if io::stdin().is_terminal() && !global.quiet {
        printer::say(
            "waiting for an MCP client on stdin; agents start this command themselves (docs/mcp.md)",
        );
    }
    let stop = interrupt::cancel_on_signal();
    // Each call is a task of this thread, as the runs of a batch are.
    let serving = Box::pin(serve(server, stop));
    LocalSet::new().run_until(serving).await
}

/// Returns once every call has ended and is recorded.
async fn serve(server: Server, stop: CancellationToken) -> Result<ExitCode, CliError> {
    let (stdin, stdout) = stdio();
    let stdin = Requests {
        stdin,
        stop: stop.clone(),
    };
    let beginning = serve_server_with_ct(server, (stdin, stdout), stop);
    let session = match Box::pin(beginning).await {
        Ok(session) => session,
        Err(ServerInitializeError::Cancelled | ServerInitializeError::ConnectionClosed(_)) => {
            return Ok(ExitCode::Success);
        }
        Err(error) => {
            let problem = format!("cannot begin the MCP session: {error}");
            return Err(CliError::failure(problem));
        }
    };
    let ended = session.waiting().await;
    ended
        .map(|_| ExitCode::Success)
        .map_err(|error| CliError::failure(format!("the MCP session failed: {error}")))
}

/// The client's requests. At their end all calls are cancelled: nobody waits for them.
struct Requests {
    stdin: Stdin,
    stop: CancellationToken,
}

impl AsyncRead for Requests {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stdin).poll_read(context, buffer));
        if read.is_err() || buffer.filled().len() == before {
            self.stop.cancel();
        }
        Poll::Ready(read)
    }
}
