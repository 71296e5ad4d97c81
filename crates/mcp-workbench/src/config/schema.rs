//! The JSON Schema of the configuration file, generated from the types of `raw`, so that editors can complete and
//! check the file.

use schemars::{
    Schema, SchemaGenerator,
    generate::SchemaSettings,
    transform::{RecursiveTransform, Transform},
};
use serde_json::Value;

use super::raw::RawConfig;

/// Returns the schema as indented JSON, with a line break at its end.
pub(crate) fn json_schema() -> String {
    let generator = SchemaGenerator::new(SchemaSettings::draft2020_12());
    let mut schema = generator.into_root_schema_for::<RawConfig>();
    RecursiveTransform(tidy).transform(&mut schema);
    format!("{:#}\n", schema.as_value())
}

/// Removes the line breaks of the source from descriptions, and the names of Rust types from numbers.
fn tidy(schema: &mut Schema) {
    schema.remove("format");
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::config::Environment;

    /// Fails when the committed schema is stale; with `UPDATE_SCHEMA=1` it is rewritten.
    #[test]
    fn the_committed_schema_is_up_to_date() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/workbench.schema.json");
        let schema = json_schema();
        let update = Environment::of_process()
            .variable("UPDATE_SCHEMA")
            .is_some();
        if update {
            fs::write(&file, &schema).expect("writing the schema");
        }
        let committed = fs::read_to_string(&file).expect("the schema is committed");
        assert!(
            committed == schema,
            "schema/workbench.schema.json is stale; run this test with UPDATE_SCHEMA=1"
        );
    }

    #[test]
    fn the_schema_stays_small() {
        assert!(json_schema().len() < 30 * 1024);
    }
}
