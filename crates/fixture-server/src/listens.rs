//! The recipients of changes: every `subscriptions/listen` of the modern era, by its filter, and every legacy client,
//! which receives all changes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    message::Request,
    modern,
    output::Output,
    script::{ListenEnd, Raw},
};

#[derive(Debug, Default)]
pub(crate) struct Listens {
    listens: Mutex<Vec<Listen>>,
}

#[derive(Debug)]
struct Listen {
    key: String,
    output: Arc<Output>,
    /// The subscription of a modern client; a legacy client has none.
    asked: Option<Asked>,
}

#[derive(Debug)]
struct Asked {
    /// The raw id of the request.
    id: String,
    filter: Filter,
}

/// The changes that a client subscribes to.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Filter {
    tools_list_changed: bool,
    prompts_list_changed: bool,
    resources_list_changed: bool,
    resource_subscriptions: Vec<String>,
    task_ids: Vec<String>,
}

/// The notification that is to be heard.
#[derive(Debug, Deserialize)]
struct Change {
    method: String,
    params: Option<Raw>,
}

/// The subject of a change.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct About {
    uri: String,
    task_id: String,
}

impl Listens {
    /// Starts a `subscriptions/listen` and acknowledges it.
    pub(crate) fn begin(&self, request: &Request) {
        let id = request.id.as_deref().expect("a request");
        let asked = request
            .known
            .notifications
            .as_deref()
            .map_or("{}", RawValue::get);
        let filter = serde_json::from_str(asked).unwrap_or_default();
        // Locked until it is acknowledged, because nothing may come before that.
        let mut listens = self.lock();
        request.output.message(&format!(
            r#"{{"method":"notifications/subscriptions/acknowledged","params":{{"_meta":{},"notifications":{asked}}}}}"#,
            tag(id.get())
        ));
        listens.push(Listen {
            key: request.key.clone(),
            output: Arc::clone(&request.output),
            asked: Some(Asked {
                id: id.get().to_owned(),
                filter,
            }),
        });
    }

    /// Adds a legacy client, which receives all changes.
    pub(crate) fn add_legacy(&self, key: &str, output: &Arc<Output>) {
        let mut listens = self.lock();
        listens.retain(|listen| listen.key != key);
        listens.push(Listen {
            key: key.to_owned(),
            output: Arc::clone(output),
            asked: None,
        });
    }

    /// Removes the subscription of a request.
    pub(crate) fn remove(&self, key: &str) {
        self.lock().retain(|listen| listen.key != key);
    }

    pub(crate) fn holds(&self, key: &str) -> bool {
        self.lock().iter().any(|listen| listen.key == key)
    }

    /// Sends a change, a raw object with `method` and perhaps `params`, to its subscribers.
    pub(crate) fn tell(&self, change: &RawValue) {
        let raw = change;
        let change: Change = serde_json::from_str(raw.get()).expect("a notification");
        let params = change.params.as_deref().map_or("{}", RawValue::get);
        let about: About = serde_json::from_str(params).unwrap_or_default();
        for listen in self.lock().iter() {
            match &listen.asked {
                None => listen.output.message(raw.get()),
                Some(asked) if asked.filter.wants(&change.method, &about) => {
                    let tagged =
                        modern::with_members(params, &[format!(r#""_meta":{}"#, tag(&asked.id))]);
                    let method = &change.method;
                    listen
                        .output
                        .message(&format!(r#"{{"method":"{method}","params":{tagged}}}"#));
                }
                Some(_) => {}
            }
        }
    }

    /// Ends every `subscriptions/listen`.
    pub(crate) fn end(&self, how: ListenEnd) {
        let mut listens = self.lock();
        let ended: Vec<Listen> = listens
            .extract_if(.., |listen| listen.asked.is_some())
            .collect();
        // Without the lock, since an output may belong to a thread that waits for it.
        drop(listens);
        for listen in ended {
            listen.end(how);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Listen>> {
        self.listens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listen {
    fn end(&self, how: ListenEnd) {
        let Some(Asked { id, .. }) = &self.asked else {
            return;
        };
        match (how, self.output.reply()) {
            (ListenEnd::Abrupt, Some(reply)) => reply.close(),
            (ListenEnd::Abrupt, None) => self.output.message(&format!(
                r#"{{"id":{id},"error":{{"code":-32603,"message":"The listen has ended"}}}}"#
            )),
            (ListenEnd::Graceful, _) => self.output.message(&format!(
                r#"{{"id":{id},"result":{{"resultType":"complete","_meta":{}}}}}"#,
                tag(id)
            )),
            (ListenEnd::Cancelled, reply) => {
                self.output.message(&format!(
                    r#"{{"method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
                ));
                if let Some(reply) = reply {
                    reply.finish();
                }
            }
        }
    }
}

impl Filter {
    fn wants(&self, method: &str, about: &About) -> bool {
        match method {
            "notifications/tools/list_changed" => self.tools_list_changed,
            "notifications/prompts/list_changed" => self.prompts_list_changed,
            "notifications/resources/list_changed" => self.resources_list_changed,
            "notifications/resources/updated" => self.resource_subscriptions.contains(&about.uri),
            "notifications/tasks" => self.task_ids.contains(&about.task_id),
            _ => false,
        }
    }
}

/// The raw `_meta` that names a subscription.
fn tag(id: &str) -> String {
    format!(r#"{{"io.modelcontextprotocol/subscriptionId":{id}}}"#)
}
