//! The bounds of serving over HTTP. docs/http.md lists them with their effects.

use std::time::Duration;

/// The bound on concurrent connections of clients.
pub(super) const MAX_CONNECTIONS: usize = 512;
/// The bound on connections without a request that had a valid token. It is larger than the number of connections that
/// are accepted between two turns of a new connection (128), so that a flood does not close one before its request is
/// read.
pub(super) const MAX_GUESTS: usize = 256;
/// How many bytes the head of a request may have. hyper itself takes at most 100 headers.
pub(super) const MAX_HEADER_BYTES: usize = 32 * 1024;
/// How long the head of a request may take, and how long a guest may be silent.
pub(super) const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may leave a connection idle between two requests.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// How many bytes the bodies that are being read may have together, in MiB.
pub(super) const MAX_BODIES_MIB: usize = 256;
pub(super) const BODY_IDLE_TIMEOUT: Duration = Duration::from_secs(30);
pub(super) const BODY_TIMEOUT: Duration = Duration::from_mins(5);
/// The part of a refused body that is read and discarded. Without it the system would reset the connection, and a
/// client that sends before it reads would not get the refusal.
pub(super) const MAX_DISCARDED_BYTES: usize = 16 * 1024 * 1024;
pub(super) const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a client may leave output unread.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_mins(1);

/// How many sessions there may be at once. An idle one has about 6 KiB.
pub(super) const MAX_SESSIONS: usize = 16_384;
/// How long a session must have been idle to make room for a new one.
pub(super) const MIN_IDLE: Duration = Duration::from_mins(1);
/// How many requests of one session run at once.
pub(super) const MAX_RUNNING: usize = 256;
/// How many requests without a session run at once. Fewer than connections, so that sessions stay usable.
pub(super) const MAX_STATELESS: usize = 384;
/// How many bytes of a request without a session may wait to be read before it gets no more notifications.
pub(super) const MAX_UNSENT_STATELESS: usize = 4 * 1024 * 1024;

/// The bound on principals with limits that have used something within a minute or so.
pub(super) const MAX_PRINCIPALS: usize = 65_536;
/// How many users with credentials of their own there may be at once.
pub(super) const MAX_USERS: usize = 1000;
/// How long such a user must have been idle before the user's connections to servers end. Longer than a call may wait for
/// its client.
pub(super) const MIN_USER_IDLE: Duration = Duration::from_mins(15);

/// How many different sets of extensions clients may declare at once. Each has servers of its own.
pub(super) const MAX_EXTENSION_SETS: usize = 64;
/// How many of them may be those of one principal.
pub(super) const MAX_EXTENSION_SETS_OF_PRINCIPAL: usize = 16;

/// How long a request may run before its response becomes a stream, which can be resumed in a session.
pub(super) const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(1);
/// The same for a request without a session to a replica. If the replica dies before, the balancer answers for it at once; on a
/// stream that breaks and cannot be resumed, official SDKs wait for an answer until their own timeout. Balancers often wait for
/// 30 s.
pub(super) const REPLICA_FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a silent stream shows that it is alive.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long a client should wait before it resumes a stream, in milliseconds.
pub(super) const RETRY_MS: u64 = 1000;
/// The bound on bytes that are stored for all clients together: unread responses, and sent events that can be resent.
/// It equals the bound on the bodies of requests.
pub(super) const MAX_UNREAD_BYTES: usize = 256 * 1024 * 1024;
/// The bytes that remain after dropping.
pub(super) const UNREAD_BYTES_AFTER_DROPPING: usize = MAX_UNREAD_BYTES / 4 * 3;
/// The size from which a response may be dropped. The error that replaces it is smaller.
pub(super) const MIN_DROPPED_BYTES: usize = 1024;
/// The bytes of a session that may wait to be read before it gets no more notifications and may make no more requests.
/// Responses of sessions beyond the bound are dropped first.
pub(super) const MAX_UNSENT_BYTES: usize = 32 * 1024 * 1024;
/// The bound on messages that belong to no request and wait for a client without an open stream.
pub(super) const MAX_STANDALONE_EVENTS: usize = 64;
/// The bound on sent bytes of a session that are stored to be resent.
pub(super) const MAX_RESEND_BYTES: usize = 4 * 1024 * 1024;
/// The bound on sent events of one stream that are stored.
pub(super) const MAX_RESEND_EVENTS: usize = 256;
/// The bound on ended streams of a session that are stored.
pub(super) const MAX_ENDED: usize = 64;
/// The size of the largest event that goes into the store of the replicas.
pub(super) const MAX_SHARED_EVENT_BYTES: usize = 1024 * 1024;
/// How long ended streams are stored.
pub(super) const ENDED_STREAM_TTL: Duration = Duration::from_mins(5);
