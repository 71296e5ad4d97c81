//! The start of a server: its process, its protocol, its first tool list. The protocol is fixed by the entry, known
//! from an earlier start, or probed.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use rawjson::RawJson;

use crate::{
    alarm::timeout,
    call::ClientHandle,
    config::{ListBounds, PinMode, Server},
    downstream::{
        asks::Asks,
        error::{ConnectError, StartPhase},
        introduction::Introduction,
        link::Link,
        listing::{ListRules, ListWalk, Step, ToolList},
        oauth::OAuthClient,
        protocol::{
            conversation::{Conversation, error_code, refused},
            dialect::Dialect,
            probe::{Certainty, DetectedServer, ProbeOutcome},
            subscription::OfferedNotifications,
        },
        server::{About, ProcessView},
        skills::{MAX_SKILL_BYTES, MAX_SKILLS},
        snapshot::ServerSnapshot,
        stray::StrayText,
        supervisor::{
            SupervisorContext,
            adapt::Entry,
            pinning::{CacheLookup, Pinning},
        },
    },
    era::{Era, SKILLS_EXTENSION},
    lock::ServerPins,
    offload::offload,
    server_cache::{CacheKey, CachedProtocol},
    shapes::Shapes,
    sync::lock,
    wire::{Answer, code},
};

/// The timeout of `server/discover` for a server of unknown era.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// The timeout of `server/discover` for a server that refused `initialize`.
const SECOND_PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// A server that is up.
pub(crate) struct Started {
    pub(crate) link: Link,
    /// The open questions of the server.
    pub(crate) asks: Asks,
    pub(crate) tools: ToolList,
    /// The snapshot that the list was made from.
    pub(crate) snapshot: ServerSnapshot,
    /// The first id that the start did not use.
    pub(crate) next_id: u64,
    /// The form of requests to the server.
    pub(crate) dialect: Dialect,
    /// The notifications that the server offers.
    pub(crate) announced: OfferedNotifications,
    pub(crate) pins: ServerPins,
}

/// The known protocol of a server, from the cache or from earlier starts.
#[derive(Default)]
pub(crate) struct KnownProtocol {
    question: ProbeHistory,
    is_read: bool,
    /// The launch that the protocol was read or probed for, if it can be cached.
    launch: Option<CacheKey>,
    protocol: Option<CachedProtocol>,
}

impl KnownProtocol {
    pub(crate) fn get(&self) -> Option<&CachedProtocol> {
        self.protocol.as_ref()
    }

    /// Forgets the protocol; returns true if there was one.
    pub(crate) fn forget(&mut self) -> bool {
        self.protocol.take().is_some()
    }

    /// Adopts the cached protocol, unless this process already knows the launch: the cache is written later, so it may
    /// be older.
    fn take_up(&mut self, cached: CacheLookup) {
        if !self.is_read || self.launch != cached.key {
            self.is_read = true;
            self.launch = cached.key;
            self.protocol = cached.protocol;
        }
    }
}

/// The outcome of earlier probes, while the era is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ProbeHistory {
    #[default]
    Harmless,
    /// The server exited during the probe. It may exit for other reasons too, so it is not started twice each time.
    Deadly,
}

/// Starts the server of an entry and waits until it has listed its tools. Dropping the future ends the server.
pub(crate) async fn start(
    entry: &Entry,
    context: &SupervisorContext,
    about: &Arc<About>,
    client: Option<&Arc<dyn ClientHandle>>,
    known: &mut KnownProtocol,
) -> Result<Started, ConnectError> {
    let server = &entry.server;
    let (pinning, cached) = Pinning::begin(entry, context).await;
    // Before the process exists, since its first message may be a question.
    if cached.asks_back {
        context.instances.mark_asks_back(about);
    }
    if let Some(shapes) = &cached.shapes {
        about.cached_list.shapes().load(Some(shapes));
    }
    known.take_up(cached);
    // An unapproved program must not run at all, so this comes before the spawn.
    if pinning.mode == PinMode::Enforce {
        pinning.pins(context).await.admit(server.pin)?;
    }
    let mut start = Start {
        server,
        entry,
        context,
        oauth: about
            .oauth
            .get_or_make(&about.identifier, entry, &context.links),
        stray: &about.stray,
        process: &about.process,
        shapes: about.cached_list.shapes(),
        client,
        known,
        pinning,
    };
    match server.era {
        Some(era) => Ok(start.in_era(era).await.map_err(in_words(era))?.0),
        None => start.as_known().await,
    }
}

/// Explains an error of a server whose entry sets the era.
fn in_words(era: Era) -> impl Fn(ConnectError) -> ConnectError {
    move |error| match (era, error) {
        (
            Era::Modern,
            error @ (ConnectError::Refused {
                phase: StartPhase::Discover,
                ..
            }
            | ConnectError::InvalidAnswer {
                phase: StartPhase::Discover,
            }),
        ) => ConnectError::NotModern {
            reason: error.to_string(),
        },
        (_, error) => error,
    }
}

struct Start<'a> {
    server: &'a Arc<Server>,
    entry: &'a Entry,
    context: &'a SupervisorContext,
    /// The OAuth client, if the server may need a sign-in.
    oauth: Option<&'a OAuthClient>,
    stray: &'a StrayText,
    /// The place for the process of the server.
    process: &'a Mutex<Option<ProcessView>>,
    /// The shapes of the server's results.
    shapes: &'a Arc<Shapes>,
    client: Option<&'a Arc<dyn ClientHandle>>,
    known: &'a mut KnownProtocol,
    /// The pins of the server.
    pinning: Pinning,
}

impl<'a> Start<'a> {
    /// Starts the server in the known era, or probes for the era. A wrong era is forgotten.
    async fn as_known(&mut self) -> Result<Started, ConnectError> {
        let known = self.known.get().cloned();
        if let Some(CachedProtocol {
            era: Era::Legacy,
            identity,
            ..
        }) = &known
        {
            match self.in_era(Era::Legacy).await {
                Ok((started, detected)) => {
                    if detected.identity() != *identity {
                        // A different version of the server may support a different era, so its next start probes
                        // again.
                        self.known.forget();
                    }
                    return Ok(started);
                }
                // The server may have been updated since it was cached, so the probe below decides.
                Err(error) if error.may_be_the_era() => {
                    self.known.forget();
                }
                Err(error) => return Err(error),
            }
        }
        let is_modern = known.is_some_and(|known| known.era == Era::Modern);
        let limit = if is_modern {
            // A server that is known to be modern only has to come up, so it gets half of the start's time.
            self.server.times.connect / 2
        } else {
            self.probe_timeout()
        };
        let (started, detected) = self.probing(limit).await?;
        let is_new = !is_modern || detected.era != Era::Modern;
        // A guess is not stored: it would be used for a week.
        if is_new && detected.certainty == Certainty::Shown {
            self.known.protocol = Some(CachedProtocol::new(detected.era, detected.identity()));
        }
        Ok(started)
    }

    fn probe_timeout(&self) -> Duration {
        // However short `connectTimeoutMs` is, `initialize` still has half of it.
        PROBE_TIMEOUT.min(self.server.times.connect / 2)
    }

    /// Starts the server in a fixed era.
    async fn in_era(&self, era: Era) -> Result<(Started, DetectedServer), ConnectError> {
        let mut conversation = self.open().await?;
        let detected = match era {
            Era::Legacy => conversation.initialize().await,
            Era::Modern => conversation.discover().await,
        };
        self.finish(conversation, detected).await
    }

    /// Starts the server and probes its era. A server that exits because of the probe is restarted.
    async fn probing(
        &mut self,
        limit: Duration,
    ) -> Result<(Started, DetectedServer), ConnectError> {
        // It exited on the probe before, so a start in the legacy era comes first.
        if self.known.question == ProbeHistory::Deadly {
            match self.in_era(Era::Legacy).await {
                Err(error) if error.is_refused() => self.known.question = ProbeHistory::Harmless,
                started => return started,
            }
        }
        let mut conversation = self.open().await?;
        match conversation.probe(limit).await {
            Ok(ProbeOutcome::Detected(detected)) => self.finish(conversation, Ok(detected)).await,
            Ok(ProbeOutcome::Exited) => {
                tracing::debug!("exited on server/discover; restarted with initialize");
                drop(conversation);
                self.known.question = ProbeHistory::Deadly;
                match self.in_era(Era::Legacy).await {
                    Err(error) if error.is_refused() => self.modern_after_all(error).await,
                    started => started,
                }
            }
            Ok(ProbeOutcome::Unclear(error)) => {
                let error = error.redacted(&conversation.link.secrets());
                drop(conversation);
                self.modern_after_all(error).await
            }
            Err(error) => self.finish(conversation, Err(error)).await,
        }
    }

    /// Tries the modern era on a server that refused the handshake: it may be a slow modern server, or it exited for
    /// a different reason when it was probed. If it is not modern, the refusal of the handshake is the error.
    async fn modern_after_all(
        &mut self,
        refusal: ConnectError,
    ) -> Result<(Started, DetectedServer), ConnectError> {
        match timeout(SECOND_PROBE_TIMEOUT, self.in_era(Era::Modern)).await {
            Ok(Ok(started)) => {
                self.known.question = ProbeHistory::Harmless;
                Ok(started)
            }
            // The versions that the server supports explain more than its refusal of the handshake.
            Ok(Err(error @ ConnectError::NoCommonVersion { .. })) => Err(error),
            Ok(Err(_)) | Err(_) => Err(refusal),
        }
    }

    async fn open(&self) -> Result<Conversation<'a>, ConnectError> {
        let link = Link::open(self.server, &self.context.links, self.oauth).await?;
        *lock(self.process) = link.process();
        Ok(Conversation {
            link,
            next_id: 1,
            asks: Asks::new(self.entry),
            client: self.client,
            stray: self.stray,
            dialect: Dialect::LEGACY,
        })
    }

    /// Reads the tool list of a connected server.
    async fn finish(
        &self,
        mut conversation: Conversation<'a>,
        detected: Result<DetectedServer, ConnectError>,
    ) -> Result<(Started, DetectedServer), ConnectError> {
        let listed = match detected {
            Ok(detected) => {
                let list = Box::pin(list(&mut conversation, self.server.list_bounds));
                let walk = list.await;
                walk.map(|walk| (detected, walk))
            }
            Err(error) => Err(error),
        };
        let (detected, walk) =
            listed.map_err(|error| error.redacted(&conversation.link.secrets()))?;
        let mut introduction = Introduction::of(&detected.said, detected.era);
        if introduction.extension(SKILLS_EXTENSION).is_some() {
            let skills = Box::pin(list_skills(&mut conversation))
                .await
                .map_err(|error| error.redacted(&conversation.link.secrets()))?;
            introduction.set_skills(skills);
        }
        let snapshot = walk.into_snapshot(detected.era, introduction);
        let mut secrets = conversation.link.secrets().into_owned();
        // A definition may repeat a credential of its server, and pins are written to a file.
        secrets.merge(&self.server.literal_credentials());
        let pins = self
            .pinning
            .pins(self.context)
            .await
            .without_secrets(secrets);
        let (server, era) = (Arc::clone(self.server), detected.era);
        let shapes = Arc::clone(self.shapes);
        let checked = Box::pin(offload(snapshot.bytes(), move || {
            let rules = ListRules::of(&server, era)
                .with_pins(&pins, server.pin)
                .with_shapes(&server, &shapes);
            (ToolList::of(&snapshot, &rules), snapshot, pins)
        }));
        let (tools, snapshot, pins) = checked.await;
        let started = Started {
            tools,
            snapshot,
            announced: OfferedNotifications::of(&detected.said),
            pins,
            dialect: conversation.dialect,
            link: conversation.link,
            next_id: conversation.next_id,
            asks: conversation.asks,
        };
        Ok((started, detected))
    }
}

async fn list(
    conversation: &mut Conversation<'_>,
    bounds: ListBounds,
) -> Result<ListWalk, ConnectError> {
    let phase = StartPhase::ListTools;
    let mut walk = ListWalk::tools(bounds);
    loop {
        let answer = conversation.request(phase, &walk.params()).await?;
        let step = match &answer {
            Answer::Result(page) => {
                let step;
                (walk, step) = accept_page(walk, page.clone()).await;
                step
            }
            Answer::Error(error) if error_code(error) == code::METHOD_NOT_FOUND.to_string() => {
                // A server without tools may still have prompts or resources.
                Some(Step::Done)
            }
            _ => None,
        };
        match step {
            Some(Step::Next) => {}
            Some(Step::Done) => return Ok(walk),
            // The tools of the pages before it can be used.
            None if walk.has_pages() => {
                walk.cut_short(" because a later page could not be read");
                return Ok(walk);
            }
            None => return Err(refused(phase, &answer, &conversation.link.secrets())),
        }
    }
}

/// Takes a page of a list, off the event loop if it is large.
async fn accept_page(mut walk: ListWalk, page: RawJson) -> (ListWalk, Option<Step>) {
    offload(page.as_bytes().len(), move || {
        let step = walk.accept(&page);
        (walk, step)
    })
    .await
}

/// Reads the skills of a server. A server that refuses has none, but its tools can be used.
async fn list_skills(conversation: &mut Conversation<'_>) -> Result<Vec<String>, ConnectError> {
    let bounds = ListBounds {
        tools: MAX_SKILLS,
        bytes: MAX_SKILL_BYTES,
    };
    let mut walk = ListWalk::new("skills", bounds);
    loop {
        let params = walk.params();
        let answer = conversation.request(StartPhase::ListSkills, &params);
        let step = match answer.await? {
            Answer::Result(page) => {
                let step;
                (walk, step) = accept_page(walk, page).await;
                step
            }
            Answer::Error(_) | Answer::Invalid => None,
        };
        match step {
            Some(Step::Next) => {}
            Some(Step::Done) => break,
            None => {
                tracing::warn!("cannot parse the server's response to skills/list");
                break;
            }
        }
    }
    if let Some(incomplete) = walk.incomplete() {
        tracing::warn!("incomplete response to skills/list: {incomplete}");
    }
    let entries = walk.into_items().into_iter();
    Ok(entries.map(|it| it.as_str().to_owned()).collect())
}
