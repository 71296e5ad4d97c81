// A form for the arguments of a tool, made from its schema. What a form cannot express is written as JSON.

import { el, parse, text } from "./element.js";

const MAX_DEPTH = 4;

// Follows references within the schema.
function resolved(schema, root, depth = 0) {
  const reference = schema?.$ref;
  if (typeof reference !== "string" || !reference.startsWith("#/") || depth > 8) return schema || {};
  const steps = reference.slice(2).split("/").map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  return resolved(steps.reduce((at, step) => at?.[step], root), root, depth + 1);
}

function kindOf(schema) {
  if (schema.enum || schema.const !== undefined) return "choice";
  const types = [schema.type].flat().filter((type) => type && type !== "null");
  if (types.length !== 1) return "json";
  if (types[0] === "array") return schema.items?.type === "string" && !schema.items.enum ? "lines" : "json";
  if (types[0] === "object") return schema.properties ? "fields" : "json";
  return types[0];
}

const choices = (values) => [el("option", { value: "" }, "not set"),
  ...values.map((value) => el("option", { value: JSON.stringify(value) }, typeof value === "string" ? value : JSON.stringify(value)))];

function control(schema, kind, attributes) {
  const placeholder = schema.default === undefined ? undefined : `default: ${typeof schema.default === "string" ? schema.default : JSON.stringify(schema.default)}`;
  const shared = { ...attributes, "data-kind": kind, placeholder };
  switch (kind) {
    case "choice": return el("select", { ...shared, placeholder: undefined }, ...choices(schema.enum || [schema.const]));
    case "boolean": return el("select", { ...shared, placeholder: undefined }, ...choices([true, false]));
    case "integer": case "number":
      return el("input", {
        ...shared, type: "number", step: kind === "integer" ? "1" : "any", min: schema.minimum, max: schema.maximum,
      });
    case "string":
      return el("textarea", { ...shared, rows: "1", class: "text", minlength: schema.minLength, maxlength: schema.maxLength });
    default: return el("textarea", { ...shared, rows: "2", placeholder: placeholder || (kind === "lines" ? "" : "JSON") });
  }
}

function field(name, schema, root, { isRequired, path, depth }) {
  const found = resolved(schema, root);
  const kind = depth < MAX_DEPTH ? kindOf(found) : "json";
  const notes = [isRequired ? "required" : "", kind === "lines" ? "one per line" : "", kind === "json" ? "JSON" : ""].filter(Boolean);
  const about = text(found.description || schema?.description);
  const title = [el("strong", {}, name), notes.length ? ` (${notes.join(", ")})` : ""];
  const attributes = { "data-path": JSON.stringify(path), name: path.join("."), required: isRequired };
  if (kind === "fields") {
    return el("fieldset", { class: "stack" }, el("legend", {}, ...title), about ? el("p", { class: "small faint" }, about) : null,
      ...inner(found, root, { isRequired, path, depth: depth + 1 }));
  }
  return el("label", {}, el("span", { class: "wrap" }, ...title, about ? ` – ${about}` : ""), control(found, kind, attributes));
}

// A field within an object that may be left out is not required by itself.
function inner(schema, root, { isRequired, path, depth }) {
  const required = new Set(isRequired ? schema.required : []);
  return Object.entries(schema.properties || {}).map(([name, property]) =>
    field(name, property, root, { isRequired: required.has(name), path: [...path, name], depth }));
}

// Returns the fields for a schema. Without properties, all arguments are written as one JSON object.
export function fields(schema) {
  const root = resolved(schema, schema);
  if (Object.keys(root.properties || {}).length > 0) return inner(root, schema, { isRequired: true, path: [], depth: 0 });
  const isFree = ["anyOf", "oneOf", "allOf", "patternProperties", "additionalProperties"].some((name) => root[name]);
  if (!isFree) return [el("p", { class: "small faint flat" }, "It has no parameters.")];
  return [el("label", {}, el("span", {}, el("strong", {}, "arguments"), " (JSON)"),
    el("textarea", { "data-kind": "json", "data-path": "[]", name: "arguments", rows: "4", placeholder: "{}" }))];
}

function valueOf(control) {
  const { kind } = control.dataset;
  if (kind === "string") return control.value;
  if (kind === "lines") return control.value.split("\n").filter((line) => line !== "");
  return parse(control.value);
}

// Returns the arguments that are filled in; `undefined` if a field is not valid, which the browser then shows.
export function read(form) {
  let values = Object.create(null);
  const controls = [...form.querySelectorAll("[data-path]")];
  for (const control of controls) {
    control.setCustomValidity("");
    if (control.value === "") continue;
    let value;
    try {
      value = valueOf(control);
    } catch {
      control.setCustomValidity("This is not valid JSON. Strings need quotes.");
      continue;
    }
    const path = JSON.parse(control.dataset.path);
    const last = path.pop();
    if (last === undefined) { values = value; continue; }
    path.reduce((at, name) => (at[name] ??= Object.create(null)), values)[last] = value;
  }
  return form.reportValidity() ? values : undefined;
}
