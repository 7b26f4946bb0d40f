//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  cdchost run --plugins ./plugins pipeline.toml
      Reads all tables, then follows the log, until it is told to stop.
  cdchost run --plugins ./plugins --until caught-up pipeline.toml
      Ends when everything that the server has now is committed.
  cdchost check --plugins ./plugins pipeline.toml
      Says all that is wrong, and what would be written where; starts nothing.
  cdchost plugin inspect plugins/paimon/paimon.wasm
      Says what a plugin is, asks for, and which options it has.
  curl --unix-socket STATE/control.sock http://localhost/v1/status
      Shows how far a running pipeline is; STATE is the folder of `checkpoint.store`.

Exit codes:
  0  ended as it was told to, everything committed
  1  failed while running: the last lines say the class, the reason and what to do
  2  refused: command line, pipeline file or plugin; also an account, a password or tables of the file that the
     server does not know
  3  refused: source, store or sink unreachable or not set up for this, a missing right, a second host on the same
     state
  130, 143  ended by a SIGINT or SIGTERM a second or more after the first, without a final checkpoint";

/// Streams changes of databases into WASM plugins, each change once.
#[derive(Debug, Parser)]
#[command(name = "cdchost", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs a pipeline until it is told to stop, or until its input ends
    ///
    /// SIGTERM or SIGINT (ctrl-c) drains it, makes a final checkpoint, commits it and ends with 0; a second one, a
    /// second or more later, ends the process at once. After any end, the same command goes on where it was.
    #[command(after_help = EXAMPLES)]
    Run(RunArguments),

    /// Looks at a pipeline without starting it: everything that is wrong, and what would be written where
    ///
    /// Connects to the server, and loads each plugin without any grant. Writes nothing.
    Check(CheckArguments),

    /// Tells about plugins
    #[command(subcommand)]
    Plugin(PluginCommand),
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Folder of the plugins: NAME.wasm or NAME/NAME.wasm
    #[arg(long, value_name = "DIR")]
    pub(crate) plugins: PathBuf,

    /// Shows the pipeline file as it counts too: defaults filled in, secrets masked
    #[arg(long)]
    pub(crate) show_config: bool,

    /// Prints one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    /// The pipeline file
    #[arg(value_name = "pipeline.toml")]
    pub(crate) pipeline: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// What a component imports, exports and asks for, and which options it has
    Inspect(InspectArguments),
}

#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    /// Prints one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    /// The component; of a folder NAME, the NAME.wasm in it
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Folder of the plugins: NAME.wasm or NAME/NAME.wasm
    #[arg(long, value_name = "DIR")]
    pub(crate) plugins: PathBuf,

    /// Ends by itself when this is reached and committed
    #[arg(long, value_enum)]
    pub(crate) until: Option<Until>,

    /// How the log on standard error is written
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,

    /// The pipeline file
    #[arg(value_name = "pipeline.toml")]
    pub(crate) pipeline: PathBuf,
}

/// Where a run ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Until {
    /// All tables are read, at one consistent set of transactions
    Snapshot,
    /// All tables are read, and the log up to where the server is then
    CaughtUp,
}

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }
}
