//! The input schemas of tools that scripts call. A script may call one tool many times, so a schema is parsed once and kept
//! as long as the list that it belongs to.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use ident::ToolName;
use serde_json::Value;

use super::{ToolDefinition, ToolList};
use crate::sync::lock;

/// The number of schemas that a list keeps parsed. Beyond it all are dropped, and parsed again when they are needed.
const MAX_SCHEMAS: usize = 256;

/// The schemas that were parsed so far.
#[derive(Debug, Default)]
pub(super) struct ParsedSchemas(Mutex<HashMap<ToolName, Arc<Value>>>);

impl ToolList {
    /// Returns the input schema of a tool, if the list has the tool and its schema is valid.
    pub(crate) fn input_schema(&self, tool: &str) -> Option<Arc<Value>> {
        let definition = self.get(tool)?;
        if let Some(parsed) = lock(&self.schemas.0).get(tool) {
            return Some(Arc::clone(parsed));
        }
        // Parsed without the lock. At worst two callers parse the same schema.
        let parsed = Arc::new(parse(definition)?);
        let mut schemas = lock(&self.schemas.0);
        if schemas.len() >= MAX_SCHEMAS {
            schemas.clear();
        }
        schemas.insert(definition.name.clone(), Arc::clone(&parsed));
        Some(parsed)
    }
}

fn parse(tool: &ToolDefinition) -> Option<Value> {
    let schema = tool.definition.member("inputSchema")?;
    serde_json::from_slice(schema.as_bytes()).ok()
}

/// A copy may get other definitions, so it begins without any.
impl Clone for ParsedSchemas {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// They follow from the definitions, which are compared themselves.
impl PartialEq for ParsedSchemas {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ParsedSchemas {}
