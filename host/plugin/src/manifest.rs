//! What a plugin says of itself, and the check of a sink's options against it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A plugin's manifest, from its `cdchost:manifest` section or its `describe`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Manifest {
    /// The plugin's name.
    pub name: String,
    /// The plugin's own version.
    pub version: String,
    /// What it does, in a sentence or two.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of its options.
    pub config_schema: Value,
    /// Names of the options that hold secrets.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// Capabilities that it uses, for the user's eyes.
    #[serde(default)]
    pub wants: Vec<String>,
    /// Version of the state that it writes.
    #[serde(default)]
    pub state_version: u32,
    /// Oldest version of state that it reads.
    #[serde(default)]
    pub reads_state_from: u32,
}

/// The format of an option, in its schema, that begins with the name of a store: `lake/warehouse`.
const STORE_PATH: &str = "store-path";
/// The format of an option that names columns: a text or a list of texts, in which `*` stands for any characters.
const COLUMNS: &str = "columns";

/// The format of an option of a route that names a target: a text, in which `{value}` stands for what rows hold.
const TARGET: &str = "target";
/// The format of an option whose keys name tables: an object, in whose keys `*` stands for any text.
const TABLES: &str = "tables";

/// One thing that is wrong with a sink's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionFinding {
    /// The key, as it stands in TOML below the sink: `warehouse`, `tables.0.name`; empty where no one key is meant.
    pub option: String,
    /// What is wrong with it, without its value.
    pub message: String,
}

impl OptionFinding {
    pub(crate) fn new(option: &str, message: impl Into<String>) -> Self {
        Self { option: option.into(), message: message.into() }
    }
}

impl Manifest {
    /// Reads the custom section's JSON.
    pub(crate) fn from_section(bytes: &[u8]) -> Result<Self, String> {
        let manifest: Self = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        manifest.checked()
    }

    /// Checks what the host relies on. A schema that came as text becomes a value.
    pub(crate) fn checked(mut self) -> Result<Self, String> {
        if let Value::String(text) = &self.config_schema {
            self.config_schema = serde_json::from_str(text).map_err(|e| format!("config-schema is not JSON: {e}"))?;
        }
        if self.name.is_empty() || self.version.is_empty() {
            return Err("name or version is empty".into());
        }
        if self.reads_state_from > self.state_version {
            return Err(format!(
                "it reads state from version {} on, yet writes version {}",
                self.reads_state_from, self.state_version
            ));
        }
        jsonschema::validator_for(&self.config_schema).map_err(|e| format!("config-schema: {}", e.masked()))?;
        Ok(self)
    }

    /// Everything that is wrong with these options (secrets filled in), one finding a key, without any value.
    pub(crate) fn check_options(&self, options: &Map<String, Value>) -> Vec<OptionFinding> {
        let validator = match jsonschema::validator_for(&self.config_schema) {
            Ok(validator) => validator,
            Err(error) => {
                return vec![OptionFinding::new("", format!("the plugin's config-schema: {}", error.masked()))];
            }
        };
        let options = Value::Object(options.clone());
        validator.iter_errors(&options).flat_map(|error| self.explain(&error)).collect()
    }

    /// Options that begin with the name of a store.
    pub fn store_options(&self) -> impl Iterator<Item = &str> {
        self.options_of_format(STORE_PATH)
    }

    /// The columns that options name as they are, without `*`: each option with the name.
    pub fn named_columns<'a>(&'a self, options: &'a Map<String, Value>) -> impl Iterator<Item = (&'a str, &'a str)> {
        let texts = |option: &'a str| match options.get(option) {
            Some(Value::Array(names)) => names.as_slice(),
            Some(name) => std::slice::from_ref(name),
            None => &[],
        };
        let named = self.options_of_format(COLUMNS);
        let named =
            named.flat_map(move |option| texts(option).iter().filter_map(move |name| Some((option, name.as_str()?))));
        named.filter(|(_, name)| !name.contains('*'))
    }

    /// Targets that options of a route name, `database.table`. Where one has a part in braces, as `{value}`, it stands for
    /// each text of the option `values`, or, where that has none, for itself as an example of what rows may hold.
    pub fn named_targets(&self, options: &Map<String, Value>) -> Vec<String> {
        let mut targets = Vec::new();
        for text in self.options_of_format(TARGET).filter_map(|option| options.get(option)?.as_str()) {
            let part = text.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
            let Some((before, (name, after))) = part else {
                targets.push(text.to_owned());
                continue;
            };
            let listed = options.get(&format!("{name}s")).and_then(Value::as_array);
            let listed: Vec<&str> = listed.into_iter().flatten().filter_map(Value::as_str).collect();
            let values = if listed.is_empty() { vec![name] } else { listed };
            targets.extend(values.iter().map(|value| format!("{before}{value}{after}")));
        }
        targets
    }

    /// The tables that options name as keys, `database.table` with `*` for any text: each option with the name.
    pub fn named_tables<'a>(&'a self, options: &'a Map<String, Value>) -> impl Iterator<Item = (&'a str, &'a str)> {
        let keys = |option: &'a str| options.get(option).and_then(Value::as_object).into_iter().flat_map(Map::keys);
        self.options_of_format(TABLES).flat_map(move |option| keys(option).map(move |name| (option, name.as_str())))
    }

    fn options_of_format(&self, wanted: &'static str) -> impl Iterator<Item = &str> {
        let properties = self.properties("").into_iter().flatten();
        let named = properties.filter(move |(_, schema)| schema.get("format").is_some_and(|format| format == wanted));
        named.map(|(name, _)| name.as_str())
    }

    fn explain(&self, error: &jsonschema::ValidationError<'_>) -> Vec<OptionFinding> {
        use jsonschema::error::ValidationErrorKind as Kind;
        let place = dotted(error.instance_path.as_str());
        match &error.kind {
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                unexpected.iter().map(|key| self.unknown(&place, key)).collect()
            }
            Kind::Required { property } => {
                let key = property.as_str().unwrap_or_default();
                let option = join(&place, key);
                let message = format!("option {option} is missing{}", self.meaning(&place, key));
                vec![OptionFinding::new(&option, message)]
            }
            _ => vec![OptionFinding::new(&place, format!("option {place}: {}", error.masked()))],
        }
    }

    fn unknown(&self, place: &str, key: &str) -> OptionFinding {
        let option = join(place, key);
        OptionFinding::new(&option, format!("unknown option {option}{}", self.nearest(place, key)))
    }

    /// ", did you mean ...?" where an option, or one of the host's own keys of a sink, is spelled nearly so.
    fn nearest(&self, place: &str, key: &str) -> String {
        let options = self.properties(place).into_iter().flat_map(|properties| properties.keys());
        let mut known: Vec<&str> = options.map(String::as_str).collect();
        if place.is_empty() {
            for key in cdchost_config::sink_keys() {
                known.push(key);
            }
        }
        match cdchost_config::nearest(key, known) {
            Some(near) => format!(", did you mean {near}?"),
            None => String::new(),
        }
    }

    /// ": what the option means", from the schema.
    fn meaning(&self, place: &str, key: &str) -> String {
        let property = self.properties(place).and_then(|properties| properties.get(key));
        match property.and_then(|p| p.get("description")).and_then(Value::as_str) {
            Some(text) => format!(": {text}"),
            None => String::new(),
        }
    }

    /// Names of top-level options are known; nested ones are not looked up.
    fn properties(&self, place: &str) -> Option<&Map<String, Value>> {
        place.is_empty().then_some(())?;
        self.config_schema.get("properties")?.as_object()
    }
}

/// `/a/b/0` as it stands in TOML: `a.b.0`.
fn dotted(pointer: &str) -> String {
    let parts: Vec<_> = pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    parts.join(".")
}

fn join(place: &str, key: &str) -> String {
    if place.is_empty() { key.into() } else { format!("{place}.{key}") }
}

#[cfg(test)]
mod tests;
