//! Writes what components say of themselves into their files: `seal BUILT SEALED [BUILT SEALED …]`.
#![expect(clippy::print_stderr, reason = "a command-line program talks to its user")]

use std::path::Path;
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let (pairs, rest) = files.as_chunks::<2>();
    if pairs.is_empty() || !rest.is_empty() {
        eprintln!("usage: seal BUILT SEALED [BUILT SEALED ...]");
        return ExitCode::from(2);
    }
    for [built, sealed] in pairs {
        if let Err(error) = cdchost_tests::component::seal(Path::new(built), Path::new(sealed)).await {
            eprintln!("seal: {error:#}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
