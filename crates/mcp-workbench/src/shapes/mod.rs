//! Shapes of results, learned from the results of tools that declare no `outputSchema`: the names and types of members, never
//! a value. They appear in signatures, so that a model knows what to select, and are never presented as a schema.
//!
//! Reading a result costs more than relaying it. So a tool is read often only until its shape is stable, in the
//! background, and a call that is not read costs one load of a counter.

mod shape;
mod write;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use ident::ToolName;
use rawjson::RawJson;
use serde::{Deserialize, Serialize};

use self::{
    shape::{MAX_PARTS, Shape},
    write::{Form, text, whole_text},
};
use crate::sync::lock;

/// The largest result that is read.
pub(crate) const MAX_RESULT_BYTES: usize = 256 * 1024;
/// The tools of one server whose shapes are learned.
const MAX_TOOLS: usize = 200;
/// The largest text of the shapes of one server.
const MAX_BYTES: usize = 64 * 1024;
/// The characters of a shape in a signature.
const SIGNATURE_CHARACTERS: usize = 240;
/// The characters of a shape in TypeScript.
const TYPESCRIPT_CHARACTERS: usize = 1500;
/// The results after which a shape is shown.
const FEWEST_RESULTS: u64 = 2;
/// The most calls of a tool that are passed over between two that are read.
const MAX_PASSED_OVER: u32 = 255;
/// The calls that are passed over while the result of one is expected, or waits to be read.
const PASSED_OVER_MEANWHILE: u32 = 31;

/// The shapes of the tools of one server.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    tools: Mutex<HashMap<ToolName, Arc<SeenShape>>>,
    /// Set while a result waits to be read.
    has_samples: Arc<AtomicBool>,
    /// Set once the shapes of earlier runs were added.
    is_loaded: AtomicBool,
}

/// The shape of the results of one tool.
#[derive(Debug, Default)]
pub(crate) struct SeenShape {
    /// The calls that are passed over before the next result is read.
    pass_over: AtomicU32,
    learned: Mutex<Learned>,
    /// The result that waits to be read.
    sample: Mutex<Option<RawJson>>,
    has_samples: Arc<AtomicBool>,
}

/// The part of a shape that is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Learned {
    results: u64,
    shape: Shape,
    /// The results in a row that changed nothing.
    #[serde(skip)]
    unchanged: u32,
}

/// The shape of a tool in a list, which has no part in comparisons of lists.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolShape(Option<Arc<SeenShape>>);

impl PartialEq for ToolShape {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ToolShape {}

impl ToolShape {
    /// Returns the place for the result of a call that begins, if it is to be read.
    pub(crate) fn due(&self) -> Option<DueSample> {
        let seen = self.0.as_ref()?;
        // Not one atomic step: a lost update only moves the next reading.
        let left = seen.pass_over.load(Ordering::Relaxed);
        if left > 0 {
            seen.pass_over.store(left - 1, Ordering::Relaxed);
            return None;
        }
        // Set here and not when the result arrives, so that of many calls in flight one is read.
        seen.pass_over
            .store(PASSED_OVER_MEANWHILE, Ordering::Relaxed);
        Some(DueSample(Some(Arc::clone(seen))))
    }

    /// Returns the shape as signatures have it, if it is known.
    pub(crate) fn signature(&self) -> Option<String> {
        let (shape, results) = self.text(Form::Signature, SIGNATURE_CHARACTERS)?;
        Some(format!("→ {shape} (seen in {results} results)"))
    }

    /// Returns the shape as a TypeScript type, if it is known.
    pub(crate) fn typescript(&self) -> Option<String> {
        let (shape, results) = self.text(Form::TypeScript, TYPESCRIPT_CHARACTERS)?;
        Some(format!("{shape} /* seen in {results} results */"))
    }

    fn text(&self, form: Form, characters: usize) -> Option<(String, u64)> {
        let learned = lock(&self.0.as_ref()?.learned);
        if learned.results < FEWEST_RESULTS {
            return None;
        }
        Some((text(&learned.shape, form, characters)?, learned.results))
    }
}

/// The place for the result of a call. If the call ends without a result to read, the next call gets the place.
#[derive(Debug)]
pub(crate) struct DueSample(Option<Arc<SeenShape>>);

impl DueSample {
    pub(crate) fn offer(mut self, result: &RawJson) {
        if let Some(seen) = self.0.take() {
            seen.offer(result);
        }
    }
}

impl Drop for DueSample {
    fn drop(&mut self) {
        if let Some(seen) = &self.0 {
            seen.pass_over.store(0, Ordering::Relaxed);
        }
    }
}

impl SeenShape {
    /// Takes a result to be read later.
    fn offer(&self, result: &RawJson) {
        if result.as_bytes().len() > MAX_RESULT_BYTES {
            return;
        }
        *lock(&self.sample) = Some(result.clone());
        self.has_samples.store(true, Ordering::Relaxed);
    }

    /// Adds the JSON of a result; `None` if it has none. Returns whether it is worth storing.
    fn add(&self, value: Option<&RawJson>) -> bool {
        let Some(value) = value else {
            // Later results of such a tool are hardly ever JSON.
            self.pass_over.store(MAX_PASSED_OVER, Ordering::Relaxed);
            return false;
        };
        let seen = Shape::of(value);
        let mut learned = lock(&self.learned);
        let mut shape = learned.shape.clone();
        shape.merge(&seen);
        let is_changed = whole_text(&shape) != whole_text(&learned.shape);
        // A shape that would become too large stays as it was.
        if shape.parts() <= MAX_PARTS {
            learned.shape = shape;
        }
        learned.results += 1;
        learned.unchanged = if is_changed { 0 } else { learned.unchanged + 1 };
        // After each result in a row without news, twice as many calls are passed over.
        let passed_over = (1_u32 << learned.unchanged.min(8)) - 1;
        self.pass_over
            .store(passed_over.min(MAX_PASSED_OVER), Ordering::Relaxed);
        // The number of results alone is stored now and then, so that a shape is shown after a restart.
        is_changed || learned.results.is_power_of_two()
    }
}

impl Shapes {
    /// Returns the shape of a tool. Beyond [`MAX_TOOLS`] none is learned.
    pub(crate) fn of(&self, tool: &ToolName) -> ToolShape {
        let mut tools = self.tools();
        if let Some(known) = tools.get(tool) {
            return ToolShape(Some(Arc::clone(known)));
        }
        if tools.len() >= MAX_TOOLS {
            return ToolShape::default();
        }
        let seen = Arc::new(SeenShape {
            has_samples: Arc::clone(&self.has_samples),
            ..SeenShape::default()
        });
        tools.insert(tool.clone(), Arc::clone(&seen));
        ToolShape(Some(seen))
    }

    /// Returns whether results wait to be read, which are then the caller's business.
    pub(crate) fn take_samples(&self) -> bool {
        // The load is cheap, and says no for nearly every call.
        self.has_samples.load(Ordering::Relaxed) && self.has_samples.swap(false, Ordering::Relaxed)
    }

    /// Reads the results that wait; `json` finds the JSON in a result. Returns whether there is something to store.
    pub(crate) fn read_samples(&self, json: impl Fn(&RawJson) -> Option<RawJson>) -> bool {
        let tools: Vec<Arc<SeenShape>> = self.tools().values().map(Arc::clone).collect();
        let mut is_changed = false;
        for seen in tools {
            let sample = lock(&seen.sample).take();
            if let Some(sample) = sample {
                is_changed |= seen.add(json(&sample).as_ref());
            }
        }
        is_changed
    }

    /// Adds the shapes of earlier runs, the first time.
    pub(crate) fn load(&self, stored: Option<&RawJson>) {
        if self.is_loaded.swap(true, Ordering::Relaxed) {
            return;
        }
        for (tool, earlier) in parsed(stored) {
            if let Some(seen) = self.of(&tool.as_str().into()).0 {
                let mut learned = lock(&seen.learned);
                learned.shape.merge(&earlier.shape);
                learned.results += earlier.results;
            }
        }
    }

    /// Returns the shapes to be stored, with those of tools that only `stored` has. `None` if there are none, or too many.
    pub(crate) fn to_json(&self, stored: Option<&RawJson>) -> Option<RawJson> {
        let mut all = parsed(stored);
        for (tool, seen) in &*self.tools() {
            let learned = lock(&seen.learned);
            if learned.results > 0 {
                all.insert(tool.to_string(), learned.clone());
            }
        }
        if all.is_empty() || all.len() > MAX_TOOLS {
            return None;
        }
        let json = RawJson::of(&all);
        (json.as_bytes().len() <= MAX_BYTES).then_some(json)
    }

    fn tools(&self) -> MutexGuard<'_, HashMap<ToolName, Arc<SeenShape>>> {
        lock(&self.tools)
    }
}

/// Parses stored shapes. Shapes that break the rules are ignored: a different build may have written the file.
fn parsed(stored: Option<&RawJson>) -> BTreeMap<String, Learned> {
    let stored = stored.filter(|it| it.as_bytes().len() <= MAX_BYTES);
    let mut parsed: BTreeMap<String, Learned> = stored
        .and_then(|it| serde_json::from_slice(it.as_bytes()).ok())
        .unwrap_or_default();
    parsed.retain(|_, it| it.shape.is_valid(0) && it.shape.parts() <= MAX_PARTS);
    parsed
}

#[cfg(test)]
mod tests;
