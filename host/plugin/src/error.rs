//! Why a plugin cannot be used, in words for the person who chose it.

use std::path::PathBuf;

use crate::OptionFinding;

/// A plugin that was refused, or an engine that cannot start. Everything here happens before a sink is opened.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// The engine cannot start on this machine.
    #[error("the plugin engine cannot start")]
    Engine(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No file of that name.
    #[error("no plugin {name} in {}: looked for {name}.wasm and {name}/{name}.wasm", folder.display())]
    NotFound {
        /// The plugin's name.
        name: String,
        /// The folder searched.
        folder: PathBuf,
    },
    /// A name that could leave the plugin folder.
    #[error("{name:?} is no plugin name: letters, digits, - and _ only")]
    Name {
        /// The name given.
        name: String,
    },
    /// The file cannot be read.
    #[error("cannot read plugin {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is larger than any plugin may be.
    #[error("plugin {} has more than {bytes_max} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The bound.
        bytes_max: u64,
    },
    /// The file is something else, or damaged.
    #[error("{} is no WASM component: {found}", path.display())]
    NotComponent {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        found: String,
    },
    /// The pipeline file pins another digest.
    #[error("plugin {} has sha256 {found}, the pipeline file asks for {expected}", path.display())]
    Digest {
        /// The file.
        path: PathBuf,
        /// As asked for.
        expected: String,
        /// As found.
        found: String,
    },
    /// The component does not fit the contract.
    #[error("plugin {} does not fit the contract: {}", path.display(), findings.join("; "))]
    Contract {
        /// The file.
        path: PathBuf,
        /// All that is wrong.
        findings: Vec<String>,
    },
    /// The component is a plugin, of a kind that cannot stand here.
    #[error("plugin {} is a {kind}, which cannot be used as a {wanted}", path.display())]
    Kind {
        /// The file.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
        /// What was asked for.
        wanted: &'static str,
    },
    /// The component does not compile.
    #[error("plugin {} cannot be compiled", path.display())]
    Compile {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What the plugin says of itself cannot be used.
    #[error("the manifest of plugin {} cannot be used: {reason}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The options or grants in the pipeline file do not suit the plugin.
    #[error("{of}: {}", joined(findings))]
    Options {
        /// What it is used as, and its id.
        of: String,
        /// All that is wrong, each naming its key.
        findings: Vec<OptionFinding>,
    },
}

impl PluginError {
    /// Everything that is wrong, one line each.
    pub fn findings(&self) -> Vec<String> {
        match self {
            Self::Options { of, findings } => findings.iter().map(|f| format!("{of}: {}", f.message)).collect(),
            Self::Contract { path, findings } => {
                findings.iter().map(|f| format!("plugin {}: {f}", path.display())).collect()
            }
            Self::Engine(source) => vec![format!("{self}: {source}")],
            Self::Compile { source, .. } => vec![format!("{self}: {source}")],
            Self::Read { source, .. } => vec![format!("{self}: {source}")],
            _ => vec![self.to_string()],
        }
    }

    /// What a person can do about it.
    pub fn instruction(&self) -> &'static str {
        match self {
            Self::Engine(_) => "raise the limit on virtual memory (ulimit -v) or use another machine",
            Self::NotFound { .. } | Self::Name { .. } => "check the name, or point --plugins at the folder that has it",
            Self::Read { .. } => "check that the file is readable",
            Self::TooLarge { .. } => "strip the component, or build it for release",
            Self::NotComponent { .. } => {
                "build it for wasm32-wasip2, or wrap a core module with `wasm-tools component new`"
            }
            Self::Digest { .. } => "put back the file that was checked, or change sha256 in the pipeline file",
            Self::Contract { .. } => "build the plugin with an SDK of this cdchost's contract version",
            Self::Kind { .. } => "name a plugin of that kind",
            Self::Compile { .. } => "build the plugin again; report it if the same file works elsewhere",
            Self::Manifest { .. } => "ask the plugin's author to mend its manifest",
            Self::Options { .. } => "mend these keys in the pipeline file",
        }
    }

    /// True where the machine is at fault and not the plugin or the pipeline file.
    pub fn is_environment(&self) -> bool {
        matches!(self, Self::Engine(_) | Self::Read { .. })
    }
}

fn joined(findings: &[OptionFinding]) -> String {
    findings.iter().map(|finding| finding.message.as_str()).collect::<Vec<_>>().join("; ")
}
