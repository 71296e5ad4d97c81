//! The TypeScript declarations of everything that a script may call, for an editor or a model.

use std::fmt::Write;

use super::names;
use crate::{
    downstream::ToolDefinition,
    policy::permissions::Hints,
    toolbox::{arguments_type, property_key, result_type, sentence},
    workbench::Workbench,
};

/// The declarations that do not depend on the tools.
const FIXED: &str = r#"/** A call that failed. */
declare class ToolError extends Error {
  readonly tool: string;
  readonly code: string;
  readonly outcome?: "not_sent" | "rejected" | "unknown";
}
/** Results that were too large to show, by the id in their notice. */
declare const results: { read(id: string): Promise<unknown> };
/** Hands a part of a result to the user: an image, a sound, a file or a link, as an object with `ref`. */
declare function emit(part: { ref: string }): Promise<void>;
declare const console: { log(...values: unknown[]): void };
interface FoundTool { tool: string; description: string | null; signature: string }
"#;

/// Returns the declarations, with the tools that scripts may call of all servers that have listed theirs.
pub(crate) fn declarations(workbench: &Workbench) -> String {
    let mut text = FIXED.to_owned();
    text.push_str("declare const tools: {\n");
    text.push_str(
        "  search(query: string, options?: { limit?: number; toolbox?: string }): Promise<FoundTool[]>;\n  describe(name: \
         string): Promise<FoundTool & Record<string, unknown>>;\n",
    );
    for server in names::servers(workbench) {
        let Some(list) = server.handle.status().tools else {
            continue;
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {}: {{", property_key(&server.name));
        let permitted = |tool: &&ToolDefinition| list.check_script(tool).is_ok();
        for tool in list.tools().iter().filter(permitted) {
            let said = sentence(&tool.definition).unwrap_or_default();
            // The text is the server's, and must not end the comment.
            let said = said.replace("*/", "* /");
            let read_only = if Hints::of(&tool.definition).read_only {
                " [read-only]"
            } else {
                ""
            };
            let _ = writeln!(text, "    /** {said}{read_only} */");
            let _ = writeln!(
                text,
                "    {}(args: {}): Promise<{}>;",
                property_key(tool.name.as_str()),
                arguments_type(&tool.definition),
                result_type(tool)
            );
        }
        text.push_str("  };\n");
    }
    text.push_str("};\n");
    text
}
