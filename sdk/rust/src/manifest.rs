//! What a plugin says of itself, made from one source: the options struct and its doc comments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a plugin says of itself. `describe` returns it; the section `cdchost:manifest` of the component is this struct
/// as JSON with kebab-case keys, field for field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Manifest {
    /// The name that a pipeline file calls it by.
    pub name: String,
    /// Its version.
    pub version: String,
    /// One line.
    pub description: String,
    /// JSON Schema of its options, as text.
    pub config_schema: String,
    /// Options that hold secrets.
    pub secrets: Vec<String>,
    /// Capabilities it needs, for the user's eyes; the grant is in the pipeline file.
    pub wants: Vec<String>,
    /// Version of the state that it saves.
    pub state_version: u32,
    /// The oldest version of saved state that it can start from.
    pub reads_state_from: u32,
}

/// Makes the [`Manifest`] of a plugin: version and description come from its `Cargo.toml`, options from the struct.
///
/// ```text
/// manifest! { name: "file", options: Options, wants: ["object-store"] }
/// ```
///
/// `secrets: [...]` names options that hold secrets, `state: (saves, reads_from)` the versions of the writers' state.
#[macro_export]
macro_rules! manifest {
    (name: $name:literal, options: $options:ty
        $(, secrets: [$($secret:literal),*])? $(, wants: [$($want:literal),*])? $(, state: ($saves:literal, $reads:literal))? $(,)?) => {{
        #[allow(unused_mut, reason = "a plugin without secrets, wants and state changes nothing of the default")]
        let mut manifest = $crate::Manifest {
            name: $name.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            description: env!("CARGO_PKG_DESCRIPTION").into(),
            config_schema: $crate::config_schema::<$options>(),
            secrets: Vec::new(),
            wants: Vec::new(),
            state_version: 1,
            reads_state_from: 1,
        };
        $(manifest.secrets = vec![$($secret.into()),*];)?
        $(manifest.wants = vec![$($want.into()),*];)?
        $((manifest.state_version, manifest.reads_state_from) = ($saves, $reads);)?
        manifest
    }};
}

/// The JSON Schema of an options struct, as text.
pub fn config_schema<T: JsonSchema>() -> String {
    schemars::schema_for!(T).as_value().to_string()
}
