//! Counts the characters that a model reads with and without the workbench, from real messages.

use serde_json::Value;

use crate::downstream::ToolList;

/// Numbers of characters, of JSON as sent and of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadingCost {
    /// Without the workbench: the definitions of all tools and the servers' instructions.
    pub(super) direct: usize,
    /// The number of these tools.
    pub(super) tools: usize,
    /// With the workbench, before a toolbox is opened: its instructions and meta-tools.
    pub(super) at_start: usize,
    pub(super) meta_tools: usize,
    /// With the workbench, after the toolbox was opened: the response of `open_toolbox` too.
    pub(super) opened: usize,
}

/// Counts the characters, given the instructions and meta-tools of the workbench, and the result of `open_toolbox`.
pub(super) fn measure(meta_tools: &ToolList, answer: &str) -> ReadingCost {
    let toolbox: Value = serde_json::from_str(answer).unwrap_or_default();
    let tools = toolbox["tools"].as_array().map_or(&[][..], Vec::as_slice);
    let instructions = toolbox["instructions"]
        .as_object()
        .into_iter()
        .flat_map(|it| it.values().filter_map(Value::as_str));
    let own_instructions = meta_tools.introduction.instructions.as_deref();
    let definitions = meta_tools.tools().iter();
    let at_start = characters(own_instructions.unwrap_or_default())
        + definitions
            .map(|tool| characters(tool.definition.as_str()))
            .sum::<usize>();
    ReadingCost {
        direct: tools.iter().map(original_length).sum::<usize>()
            + instructions.map(characters).sum::<usize>(),
        tools: tools.len(),
        at_start,
        meta_tools: meta_tools.tools().len(),
        opened: at_start + characters(answer),
    }
}

/// Returns the length of a definition as its server sent it, without the two members that the workbench adds.
fn original_length(tool: &Value) -> usize {
    let mut tool = tool.clone();
    if let Some(members) = tool.as_object_mut() {
        members.retain(|name, _| name != "server" && name != "toolbox");
    }
    characters(&tool.to_string())
}

fn characters(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_members_of_the_workbench_are_not_counted() {
        let toolbox = json!({
            "tools": [
                {"name": "a", "server": "s", "toolbox": "t"},
                {"name": "é", "server": "s", "toolbox": "t"}
            ],
            "instructions": {"s": "be kind"}
        });
        let answer = toolbox.to_string();
        let mut meta_tools = ToolList::default();
        meta_tools.introduction.instructions = Some("hello".to_owned());
        assert_eq!(
            measure(&meta_tools, &answer),
            ReadingCost {
                direct: 12 + 12 + 7,
                tools: 2,
                at_start: 5,
                meta_tools: 0,
                opened: 5 + answer.chars().count(),
            }
        );
    }
}
