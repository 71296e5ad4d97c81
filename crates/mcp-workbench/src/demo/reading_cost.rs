//! Counts the characters that a model reads with and without the workbench, from real messages.

use serde_json::Value;

/// Numbers of characters, of JSON as sent and of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadingCost {
    /// Without the workbench: the definitions of all tools and the servers' instructions.
    pub(super) direct: usize,
    /// The number of these tools.
    pub(super) tools: usize,
    /// With the workbench, before a toolbox is opened: its instructions and meta-tools.
    pub(super) at_start: usize,
    /// The number of meta-tools.
    pub(super) meta_tools: usize,
    /// With the workbench, after the toolbox was opened: the response of `open_toolbox` too.
    pub(super) opened: usize,
}

/// Counts the characters, given the workbench's instructions, its meta-tools, and the result of `open_toolbox` as
/// text and as JSON.
pub(super) fn measure(
    instructions: &str,
    meta_tools: &[Value],
    answer: &str,
    toolbox: &Value,
) -> ReadingCost {
    let tools = toolbox["tools"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let own_words = toolbox["instructions"].as_object();
    let own_words = own_words.into_iter().flat_map(|servers| servers.values());
    let at_start = characters(instructions) + meta_tools.iter().map(json_length).sum::<usize>();
    ReadingCost {
        direct: tools.iter().map(original_length).sum::<usize>()
            + own_words
                .filter_map(Value::as_str)
                .map(characters)
                .sum::<usize>(),
        tools: tools.len(),
        at_start,
        meta_tools: meta_tools.len(),
        opened: at_start + characters(answer),
    }
}

/// Returns the length of a definition as its server sent it, without the two members that the workbench adds.
fn original_length(tool: &Value) -> usize {
    let mut tool = tool.clone();
    if let Some(members) = tool.as_object_mut() {
        members.retain(|name, _| name != "server" && name != "toolbox");
    }
    json_length(&tool)
}

fn json_length(value: &Value) -> usize {
    characters(&value.to_string())
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
    fn each_way_is_counted_from_the_messages() {
        let toolbox = json!({
            "tools": [
                {"name": "a", "server": "s", "toolbox": "t"},
                {"name": "é", "server": "s", "toolbox": "t"}
            ],
            "instructions": {"s": "be kind"}
        });
        let answer = toolbox.to_string();
        assert_eq!(
            measure("hello", &[json!({"name": "m"})], &answer, &toolbox),
            ReadingCost {
                direct: 12 + 12 + 7,
                tools: 2,
                at_start: 5 + 12,
                meta_tools: 1,
                opened: 5 + 12 + answer.chars().count(),
            }
        );
    }

    #[test]
    fn an_empty_toolbox_counts_nothing() {
        let reading = measure("", &[], "{}", &json!({}));
        assert_eq!((reading.direct, reading.tools, reading.opened), (0, 0, 2));
    }
}
