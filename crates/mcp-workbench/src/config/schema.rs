//! The JSON Schema of the configuration file, for editors. The committed file is part of the program; a test generates it
//! from the types of the file as written and fails if the committed one is stale.

/// The schema as indented JSON, with a line break at its end.
pub(crate) const JSON_SCHEMA: &str = include_str!("../../../../schema/workbench.schema.json");

#[cfg(test)]
mod tests {
    use std::{borrow::Cow, fs, path::Path};

    use schemars::{
        JsonSchema, Schema, SchemaGenerator,
        generate::SchemaSettings,
        json_schema,
        transform::{RecursiveTransform, Transform},
    };
    use serde_json::Value;

    use super::*;
    use crate::config::{
        Environment,
        raw::{RawConfig, Text},
    };

    impl JsonSchema for Text {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> Cow<'static, str> {
            "Text".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({"type": "string"})
        }
    }

    fn generate() -> String {
        let generator = SchemaGenerator::new(SchemaSettings::draft2020_12());
        let mut schema = generator.into_root_schema_for::<RawConfig>();
        RecursiveTransform(tidy).transform(&mut schema);
        format!("{:#}\n", schema.as_value())
    }

    /// Removes the line breaks of the source from descriptions, and the names of Rust's types from numbers.
    fn tidy(schema: &mut Schema) {
        schema.remove("format");
        if let Some(Value::String(description)) = schema.get_mut("description") {
            *description = description.replace('\n', " ");
        }
    }

    /// Fails if the committed schema is stale; with `UPDATE_SCHEMA=1` it is rewritten.
    #[test]
    fn the_committed_schema_is_up_to_date() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/workbench.schema.json");
        let schema = generate();
        let update = Environment::of_process()
            .variable("UPDATE_SCHEMA")
            .is_some();
        if update {
            fs::write(&file, &schema).expect("writing the schema");
            return;
        }
        assert!(
            JSON_SCHEMA == schema,
            "schema/workbench.schema.json is stale; run this test with UPDATE_SCHEMA=1"
        );
    }

    #[test]
    fn the_schema_stays_small() {
        assert!(JSON_SCHEMA.len() < 40 * 1024);
    }
}
