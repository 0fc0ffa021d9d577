//! The body of an answer, read ahead of the call that waits for it.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, SimplexStream, simplex};
use tokio::task::JoinHandle;

/// How many bytes may wait to be taken: a hundred pieces or so of an answer that comes token by token.
const AHEAD: usize = 32 * 1024;

/// A body that is being read by a task of its own. Where a server is faster than its reader, many pieces
/// are there at once; without the task each of them would cost a turn of the whole program, down to a
/// question to the operating system.
#[derive(Debug)]
pub(super) struct Body {
    coming: ReadHalf<SimplexStream>,
    taken: Vec<u8>,
    /// Says how the body ended; `None` once it has said so.
    reader: Option<JoinHandle<Result<(), reqwest::Error>>>,
}

impl Body {
    /// Begins to read. To be called inside a runtime.
    pub(super) fn new(mut response: reqwest::Response) -> Self {
        let (coming, mut pipe) = simplex(AHEAD);
        let reader = tokio::spawn(async move {
            let end = loop {
                match response.chunk().await {
                    Ok(Some(bytes)) if pipe.write_all(&bytes).await.is_ok() => {}
                    Ok(_) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            let _ = pipe.shutdown().await;
            end
        });
        Self {
            coming,
            taken: Vec::with_capacity(AHEAD),
            reader: Some(reader),
        }
    }

    /// Waits until something has come, and takes all of it; `None` if the body has ended. May be given up and called
    /// again.
    ///
    /// # Errors
    /// If the body ends before its time.
    pub(super) async fn next(&mut self) -> Result<Option<&[u8]>, reqwest::Error> {
        self.taken.clear();
        if self
            .coming
            .read_buf(&mut self.taken)
            .await
            .is_ok_and(|length| length > 0)
        {
            return Ok(Some(&self.taken));
        }
        let Some(reader) = &mut self.reader else {
            return Ok(None);
        };
        let end = reader.await;
        self.reader = None;
        end.unwrap_or(Ok(())).map(|()| None)
    }

    /// Reads the rest and forgets it. Only then can the connection be used for the next call.
    pub(super) async fn drain(&mut self) {
        while let Ok(Some(_)) = self.next().await {}
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Some(reader) = &self.reader {
            reader.abort();
        }
    }
}
