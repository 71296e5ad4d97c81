//! What goes to one client, in the order in which it was said. Everybody who has something to say
//! holds a [`ClientOutput`]; one task writes.

use std::io;

use tokio::{io::AsyncWrite, sync::mpsc};

use crate::{call::ClientHandle, pipe::FrameWriter, wire::Frame};

/// The way to a client. Cheap to clone.
#[derive(Clone)]
pub(super) struct ClientOutput {
    frames: mpsc::UnboundedSender<Frame>,
}

impl ClientOutput {
    /// An output, and what its writer takes from it.
    pub(super) fn channel() -> (Self, mpsc::UnboundedReceiver<Frame>) {
        let (frames, queued) = mpsc::unbounded_channel();
        (Self { frames }, queued)
    }
}

impl ClientHandle for ClientOutput {
    fn send(&self, frame: Frame) {
        // A client that has gone away reads nothing; the connection ends on its own.
        let _ = self.frames.send(frame);
    }
}

/// Writes frames until all outputs are gone, or the client is.
pub(super) async fn write_frames<W: AsyncWrite + Unpin>(
    mut frames: mpsc::UnboundedReceiver<Frame>,
    pipe: W,
) -> io::Result<()> {
    let mut writer = FrameWriter::new(pipe);
    loop {
        tokio::select! {
            frame = frames.recv() => {
                let Some(frame) = frame else {
                    return writer.drain().await;
                };
                writer.push(frame);
                while let Ok(frame) = frames.try_recv() {
                    writer.push(frame);
                }
            }
            written = writer.write_some() => written?,
        }
    }
}
