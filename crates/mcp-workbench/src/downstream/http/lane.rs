//! One connection of HTTP/1.1, which carries one exchange at a time. Nothing runs beside it: whoever waits for an
//! exchange drives the connection, so that an answer passes through no other task.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Waker},
};

use hyper::{
    Request, Response,
    body::Incoming,
    client::conn::{
        TrySendError,
        http1::{self, Connection, SendRequest},
    },
};
use tokio::time::Instant;

use super::body::MessageBody;
use crate::dial::Stream;

/// What reads and writes while it is polled. On the heap, since a lane is handed on; gone when it is over.
type Driven = Box<Connection<Box<dyn Stream>, MessageBody>>;

/// Why there is no answer, with the request if nothing of it was sent. On the heap: it is large and rare.
type Unanswered = Box<TrySendError<Request<MessageBody>>>;

/// A connection.
pub(super) struct Lane {
    sender: SendRequest<MessageBody>,
    connection: Option<Driven>,
    /// When its last exchange was over.
    pub(super) idle_since: Instant,
}

impl Lane {
    /// Begins HTTP on a stream.
    pub(super) async fn new(stream: Box<dyn Stream>) -> Result<Self, hyper::Error> {
        let (sender, connection) = http1::handshake(stream).await?;
        Ok(Self {
            sender,
            connection: Some(Box::new(connection)),
            idle_since: Instant::now(),
        })
    }

    /// Sends a request and waits for the head of its answer. The body comes while the lane is driven.
    pub(super) fn exchange(
        &mut self,
        request: Request<MessageBody>,
    ) -> impl Future<Output = Result<Response<Incoming>, Unanswered>> {
        // Taken before anything is waited for, so that the future does not hold it.
        let answer = self.sender.try_send_request(request);
        let connection = &mut self.connection;
        async move {
            let mut answer = pin!(answer);
            poll_fn(|context| {
                drive(connection, context);
                answer.as_mut().poll(context)
            })
            .await
            .map_err(Box::new)
        }
    }

    /// Lets the connection read and write what it can.
    pub(super) fn drive(&mut self, context: &mut Context<'_>) {
        drive(&mut self.connection, context);
    }

    /// Whether another exchange may begin: the last one is over, and the server has not closed the connection.
    pub(super) fn is_ready(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.connection.is_some() && self.sender.is_ready()
    }
}

fn drive(connection: &mut Option<Driven>, context: &mut Context<'_>) {
    let Some(driven) = connection else {
        return;
    };
    if Pin::new(driven).poll(context).is_ready() {
        // Whoever waits learns of the end, and of its reason, by its own part of the exchange.
        *connection = None;
    }
}
