//! The skills of all servers in native mode. A skill is identified by its server and its URI, so a directory that two servers
//! use, or of which one contains the other, is shown under a generated URI for the later server.

use std::sync::Arc;

use ident::{ServerIdentifier, ServerName};
use rawjson::RawJson;

use super::{
    Native,
    error::NativeError,
    merged::Route,
    requests::{Answered, relay, required},
};
use crate::{
    call::CallContext,
    downstream::{Skill, ToolList, is_within},
    era::{CacheHints, Era, SKILLS_EXTENSION},
    list_page::page,
    lock::canonical,
    toolbox::server_prefix,
};

const SCHEME: &str = "skill://";
/// The prefix of our URIs for skills.
const PREFIX: &str = "skill://mcp-workbench/";

/// The skills of the servers as clients see them, in the order of the file.
pub(super) struct ShownSkills {
    skills: Vec<ShownSkill>,
}

/// A skill with the directory under which clients see it.
struct ShownSkill {
    server: ServerName,
    skill: Skill,
    /// The URI of its directory.
    root: String,
}

impl ShownSkills {
    /// Merges the skills of a toolbox.
    pub(super) fn of(native: &Native) -> Self {
        let mut skills: Vec<ShownSkill> = Vec::new();
        for (server, list) in native.toolbox.catalogue().lists() {
            for skill in &list.skills {
                let is_taken = |root: &str| {
                    // No server may have a URI of the form that is generated for others.
                    root.starts_with(PREFIX)
                        || skills.iter().any(|it| {
                            it.server != *server
                                && (is_within(&it.root, root) || is_within(root, &it.root))
                        })
                };
                let root = if is_taken(skill.root()) {
                    let Some(root) = renamed(native, server, skill.root()) else {
                        tracing::warn!(
                            "omitting a skill of server '{server}', whose URI another server uses: {}",
                            skill.uri
                        );
                        continue;
                    };
                    root
                } else {
                    skill.root().to_owned()
                };
                skills.push(ShownSkill {
                    server: server.clone(),
                    skill: skill.clone(),
                    root,
                });
            }
        }
        Self { skills }
    }

    /// Returns the route of a resource that belongs to a skill: to that with the longest directory.
    pub(super) fn route(&self, uri: &str) -> Option<Route> {
        let skills = self.skills.iter().filter(|it| is_within(uri, &it.root));
        let skill = skills.max_by_key(|it| it.root.len())?;
        Some(Route {
            shown: uri.into(),
            original: format!("{}{}", skill.skill.root(), &uri[skill.root.len()..]).into(),
            server: skill.server.clone(),
        })
    }

    fn get(&self, uri: &str) -> Option<&ShownSkill> {
        self.skills.iter().find(|it| it.uri() == uri)
    }
}

impl ShownSkill {
    fn uri(&self) -> String {
        format!(
            "{}{}",
            self.root,
            &self.skill.uri[self.skill.root().len()..]
        )
    }

    /// Returns an entry of this skill with the URIs that clients see.
    fn shown(&self, entry: &RawJson) -> RawJson {
        let original = self.skill.root();
        if self.root == original {
            return entry.clone();
        }
        let entry = entry.with_member("uri", &RawJson::of(&self.uri()));
        with_roots(&entry, original, &self.root)
    }
}

/// Handles `skills/list`.
pub(super) fn list(native: &Native, params: &RawJson, era: Era) -> Answered {
    require(native)?;
    let skills = ShownSkills::of(native).skills;
    let entries: Vec<RawJson> = skills.iter().map(|it| it.shown(&it.skill.entry)).collect();
    let list = page(Some(params), "skills", &entries)?;
    Ok(match era {
        Era::Legacy => list,
        // No notification would tell a client that its copy is outdated.
        Era::Modern => CacheHints::NONE.put_on(&list),
    })
}

/// Handles `skills/get`. The server is asked, since its skills may have changed. A changed entry is not passed on where only
/// approved ones are offered.
pub(super) async fn get(native: &Native, params: &RawJson, context: CallContext) -> Answered {
    require(native)?;
    let uri = required(params, "uri")?;
    let skills = ShownSkills::of(native);
    let unknown = || NativeError::invalid(format!("Unknown skill: {uri}"));
    let Some(skill) = skills.get(&uri) else {
        let catalogue = native.toolbox.catalogue();
        let mut lists = catalogue.lists().iter();
        if let Some(withheld) = lists.find_map(|(_, list)| list.withheld_skill(&uri)) {
            return Err(withheld_error(&uri, &withheld.reason));
        }
        let route = native.resource_route(&uri, &context.client).await?;
        let list = list_of(native, &route.server).ok_or_else(unknown)?;
        // Servers may have skills that they do not list. Where only approved skills are offered, nobody has approved
        // these.
        if list.is_enforced || route.shown != route.original {
            return Err(unknown());
        }
        return relay(native, "skills/get", params, &route, context).await;
    };
    let route = Route {
        shown: uri.as_str().into(),
        original: (&*skill.skill.uri).into(),
        server: skill.server.clone(),
    };
    let params = params.with_member("uri", &RawJson::of(&&*route.original));
    let result = relay(native, "skills/get", &params, &route, context).await?;
    let Some(entry) = result.member("skill") else {
        return Ok(result);
    };
    let is_enforced = list_of(native, &skill.server).is_some_and(|list| list.is_enforced);
    // In canonical form, as for pins: different white space or a different order of keys is not a change.
    if is_enforced && canonical(&entry) != canonical(&skill.skill.entry) {
        return Err(NativeError::invalid(format!(
            "Skill {uri} of server '{}' changed since it was approved, and is withheld until its server is restarted and \
             the user approves it",
            skill.server
        )));
    }
    Ok(result.with_member("skill", &skill.shown(&entry)))
}

/// Handles `resources/directory/read`.
pub(super) async fn read_directory(
    native: &Native,
    params: &RawJson,
    context: CallContext,
) -> Answered {
    require(native)?;
    let uri = required(params, "uri")?;
    let route = native.resource_route(&uri, &context.client).await?;
    let list = list_of(native, &route.server);
    if !list.is_some_and(|list| reads_directories(&list)) {
        return Err(NativeError::NotOffered);
    }
    let params = params.with_member("uri", &RawJson::of(&&*route.original));
    let result = relay(native, "resources/directory/read", &params, &route, context).await?;
    Ok(if route.shown == route.original {
        result
    } else {
        with_roots(&result, &route.original, &route.shown)
    })
}

/// Refuses a resource of a skill that is withheld. A withheld skill of one server says nothing about those of others.
pub(super) fn refuse_withheld(native: &Native, route: &Route) -> Result<(), NativeError> {
    let list = list_of(native, &route.server);
    match list
        .as_ref()
        .and_then(|it| it.withheld_skill(&route.original))
    {
        Some(withheld) => Err(withheld_error(&route.shown, &withheld.reason)),
        None => Ok(()),
    }
}

pub(super) fn withheld_error(uri: &str, reason: &str) -> NativeError {
    NativeError::invalid(format!("{uri} is withheld: {reason}"))
}

/// Returns true if a server lists directories.
pub(super) fn reads_directories(list: &ToolList) -> bool {
    let settings = list
        .introduction
        .extension(SKILLS_EXTENSION)
        .and_then(|it| serde_json::from_str::<serde_json::Value>(it).ok());
    settings.is_some_and(|settings| settings["directoryRead"] == true)
}

/// Refuses requests about skills if no server has declared the extension.
fn require(native: &Native) -> Result<(), NativeError> {
    let catalogue = native.toolbox.catalogue();
    let mut lists = catalogue.lists().iter();
    let has_skills = |list: &ToolList| list.introduction.extension(SKILLS_EXTENSION).is_some();
    if lists.any(|(_, list)| has_skills(list)) {
        Ok(())
    } else {
        Err(NativeError::NotOffered)
    }
}

fn list_of(native: &Native, server: &ServerName) -> Option<Arc<ToolList>> {
    let catalogue = native.toolbox.catalogue();
    let mut lists = catalogue.lists().iter();
    let (_, list) = lists.find(|(name, _)| name == server)?;
    Some(Arc::clone(list))
}

/// Returns our URI for a directory; `None` if it has a scheme of its own.
fn renamed(native: &Native, server: &ServerName, root: &str) -> Option<String> {
    let rest = root.strip_prefix(SCHEME)?;
    let identifier = ServerIdentifier {
        toolbox: native.toolbox.name().clone(),
        server: server.clone(),
    };
    Some(format!("{}{rest}", server_prefix(PREFIX, &identifier)))
}

/// Returns an object whose `resources` are in another directory. Resources that are not in `from` stay.
fn with_roots(object: &RawJson, from: &str, to: &str) -> RawJson {
    let Some(resources) = object.member("resources").and_then(|it| it.elements()) else {
        return object.clone();
    };
    let resources: Vec<String> = resources
        .iter()
        .map(|resource| {
            let uri = resource.member("uri");
            let uri = uri.as_ref().and_then(RawJson::as_text);
            match uri.filter(|uri| is_within(uri, from)) {
                Some(uri) => {
                    let uri = format!("{to}{}", &uri[from.len()..]);
                    resource
                        .with_member("uri", &RawJson::of(&uri))
                        .as_str()
                        .to_owned()
                }
                None => resource.as_str().to_owned(),
            }
        })
        .collect();
    let array = format!("[{}]", resources.join(","));
    let array = RawJson::parse(&array.into()).expect("made of JSON");
    object.with_member("resources", &array)
}
