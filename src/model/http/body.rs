//! The body of an answer, read ahead of the call that waits for it.

use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_util::bytes::Bytes;

/// How many chunks may wait to be taken. A server sends one for each token, so this is a few lines of text.
const AHEAD: usize = 64;

/// A piece of a body as it came.
pub(super) type Chunk = Result<Bytes, reqwest::Error>;

/// A body that is being read by a task of its own. Where a server is faster than its reader, many chunks
/// are there at once; without the task each of them would cost a turn of the whole program, down to a
/// question to the operating system.
#[derive(Debug)]
pub(super) struct Body {
    coming: mpsc::Receiver<Chunk>,
    ready: Vec<Chunk>,
    reader: AbortHandle,
}

impl Body {
    /// Begins to read. To be called inside a runtime.
    pub(super) fn new(mut response: reqwest::Response) -> Self {
        let (sender, coming) = mpsc::channel(AHEAD);
        let reader = tokio::spawn(async move {
            while let Some(chunk) = response.chunk().await.transpose() {
                let broken = chunk.is_err();
                if sender.send(chunk).await.is_err() || broken {
                    return;
                }
            }
        });
        Self {
            coming,
            ready: Vec::with_capacity(AHEAD),
            reader: reader.abort_handle(),
        }
    }

    /// Waits until something has come. Says whether there is something: if not, the body has ended.
    pub(super) async fn wait(&mut self) -> bool {
        self.coming.recv_many(&mut self.ready, AHEAD).await > 0
    }

    /// All that has come and was not taken yet.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Chunk> {
        self.ready.drain(..)
    }

    /// Reads the rest and forgets it. Only then can the connection be used for the next call.
    pub(super) async fn drain(&mut self) {
        while self.wait().await {
            self.ready.clear();
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.reader.abort();
    }
}
