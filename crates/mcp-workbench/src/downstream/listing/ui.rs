//! The user interface of a tool (MCP Apps): the resource that shows its results, and whether the model may see the tool.

use rawjson::{Kind, ObjectText, RawJson};

use super::{ToolDefinition, ToolList};

/// The scheme of resources that are user interfaces.
pub(crate) const UI_SCHEME: &str = "ui://";

/// The older member of `_meta` for the resource, which servers send beside the new one.
const FLAT_KEY: &str = "ui/resourceUri";

/// The part of a definition that hosts of MCP Apps read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolUi {
    /// The URIs of the resource. There are several only if the members of the definition disagree.
    pub resources: Vec<String>,
    /// True if only the app may call the tool, and the model must not see it.
    pub is_app_only: bool,
}

impl ToolUi {
    /// Reads the `_meta` of a definition; `None` if the tool has no user interface.
    pub(super) fn of(meta: &RawJson) -> Option<Box<Self>> {
        let mut ui = Self {
            resources: Vec::new(),
            is_app_only: false,
        };
        // Of duplicate members a host may read any, so all of them count.
        for member in meta.members()? {
            match &*member.key {
                "ui" => {
                    let settings = member.value.members().unwrap_or_default();
                    for setting in settings {
                        match &*setting.key {
                            "resourceUri" => ui.add(&setting.value),
                            "visibility" => ui.is_app_only |= hides_from_model(&setting.value),
                            _ => {}
                        }
                    }
                }
                FLAT_KEY => ui.add(&member.value),
                _ => {}
            }
        }
        (ui.is_app_only || !ui.resources.is_empty()).then(|| Box::new(ui))
    }

    fn add(&mut self, uri: &RawJson) {
        if let Some(uri) = uri.as_text()
            && uri.starts_with(UI_SCHEME)
            && !self.resources.iter().any(|it| *it == uri)
        {
            self.resources.push(uri.into_owned());
        }
    }
}

impl ToolDefinition {
    /// Returns true if the model must not see the tool.
    pub(crate) fn is_app_only(&self) -> bool {
        self.ui.as_ref().is_some_and(|ui| ui.is_app_only)
    }
}

impl ToolList {
    /// Returns true if a tool of the server has a user interface.
    pub(crate) fn has_ui(&self) -> bool {
        self.tools.iter().any(|tool| tool.ui.is_some())
    }

    /// Returns true if the model must not see some of the tools.
    pub(crate) fn has_app_only(&self) -> bool {
        self.tools.iter().any(ToolDefinition::is_app_only)
    }

    /// Returns the list without the tools that the model must not see.
    pub(crate) fn for_model(&self) -> Self {
        let mut list = self.clone();
        list.by_name.clear();
        for tool in std::mem::take(&mut list.tools) {
            if !tool.is_app_only() {
                list.offer(tool);
            }
        }
        list
    }
}

/// Returns a definition with other URIs for its user interface. All other bytes are unchanged.
pub(crate) fn with_ui_uris(definition: &RawJson, rename: impl Fn(&str) -> String) -> RawJson {
    let renamed = |uri: &RawJson| match uri.as_text() {
        Some(text) if text.starts_with(UI_SCHEME) => RawJson::of(&rename(&text)),
        _ => uri.clone(),
    };
    let meta = definition.member("_meta");
    let Some(members) = meta.as_ref().and_then(RawJson::members) else {
        return definition.clone();
    };
    let mut text = ObjectText::new();
    for member in &members {
        text = match &*member.key {
            "ui" if member.value.kind() == Kind::Object => {
                let settings = member.value.members().unwrap_or_default();
                let ui =
                    settings
                        .iter()
                        .fold(ObjectText::new(), |text, setting| match &*setting.key {
                            "resourceUri" => text.raw("resourceUri", &renamed(&setting.value)),
                            _ => text.relay(setting),
                        });
                text.raw("ui", &ui.finish())
            }
            FLAT_KEY => text.raw(FLAT_KEY, &renamed(&member.value)),
            _ => text.relay(member),
        };
    }
    definition.with_member("_meta", &text.finish())
}

/// Returns true if a tool with this `visibility` is not for the model. The default is for both.
fn hides_from_model(visibility: &RawJson) -> bool {
    let audience = visibility.elements();
    audience.is_some_and(|it| {
        !it.iter()
            .any(|who| who.as_text().as_deref() == Some("model"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The URIs of a tool's resource, and whether it is for the app only.
    type Expected = (&'static [&'static str], bool);

    fn parse(text: &str) -> RawJson {
        RawJson::parse(&text.to_owned().into()).unwrap()
    }

    #[test]
    fn a_definition_says_its_resource_and_its_audience() {
        let rows: &[(&str, Option<Expected>)] = &[
            ("{}", None),
            (r#"{"_meta":1}"#, None),
            (r#"{"_meta":{"ui":{}}}"#, None),
            (r#"{"_meta":{"ui":"ui://a"}}"#, None),
            (r#"{"_meta":{"ui":{"resourceUri":"file:///a"}}}"#, None),
            (r#"{"_meta":{"ui":{"visibility":"app"}}}"#, None),
            (r#"{"_meta":{"ui":{"visibility":["model"]}}}"#, None),
            (
                r#"{"_meta":{"ui":{"resourceUri":"ui://a"}}}"#,
                Some((&["ui://a"], false)),
            ),
            (
                r#"{"_meta":{"ui/resourceUri":"ui://a"}}"#,
                Some((&["ui://a"], false)),
            ),
            (
                r#"{"_meta":{"ui":{"visibility":["app"]}}}"#,
                Some((&[], true)),
            ),
            (r#"{"_meta":{"ui":{"visibility":[]}}}"#, Some((&[], true))),
            (
                r#"{"_meta":{"ui":{"resourceUri":"ui://a"},"ui":{"resourceUri":"ui://b"},"ui/resourceUri":"ui://c"}}"#,
                Some((&["ui://a", "ui://b", "ui://c"], false)),
            ),
        ];
        for (definition, expected) in rows {
            let expected = expected.map(|(resources, is_app_only)| {
                Box::new(ToolUi {
                    resources: resources.iter().map(|it| (*it).to_owned()).collect(),
                    is_app_only,
                })
            });
            let meta = parse(definition).member("_meta");
            let read = meta.as_ref().and_then(ToolUi::of);
            assert_eq!(read, expected, "{definition}");
        }
    }

    #[test]
    fn every_uri_of_an_interface_is_renamed_and_nothing_else() {
        let definition = r#"{"name":"t","_meta":{"n":1e400,"ui":{"csp":[ 1],"resourceUri":"ui://a"},"ui":{"resourceUri":7},"ui/resourceUri":"ui://b"},"z":1}"#;
        let renamed = with_ui_uris(&parse(definition), |uri| format!("{uri}!"));
        assert_eq!(
            renamed.as_str(),
            r#"{"name":"t","_meta":{"n":1e400,"ui":{"csp":[ 1],"resourceUri":"ui://a!"},"ui":{"resourceUri":7},"ui/resourceUri":"ui://b!"},"z":1}"#
        );
        assert_eq!(with_ui_uris(&parse("{}"), str::to_owned).as_str(), "{}");
    }
}
