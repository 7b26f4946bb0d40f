//! What is found before a pipeline starts: gathered, shown together, turned into an exit code.

use cdchost_config::{Finding, Severity};
use cdchost_connector::{ConnectorError, StopClass};

use crate::telemetry::Screen;

/// Who has to mend a finding; decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// The command line, the pipeline file or a plugin.
    Config,
    /// The world around: a server, a folder, another process.
    Environment,
}

/// All that was found so far.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<(Blame, Finding)>,
}

impl Findings {
    pub(crate) fn add(&mut self, blame: Blame, finding: Finding) {
        self.list.push((blame, finding));
    }

    pub(crate) fn extend(&mut self, blame: Blame, findings: impl IntoIterator<Item = Finding>) {
        self.list.extend(findings.into_iter().map(|finding| (blame, finding)));
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        self.list.append(&mut other.list);
    }

    /// The exit code that the errors ask for; none where there is no error.
    pub(crate) fn exit_code(&self) -> Option<u8> {
        let errors = || self.list.iter().filter(|(_, finding)| finding.severity == Severity::Error);
        let code = |blame: Blame| if blame == Blame::Config { 2 } else { 3 };
        errors().map(|(blame, _)| code(*blame)).min()
    }

    /// Shows all, and how many there are.
    pub(crate) fn show(&self, screen: &Screen) {
        for (_, finding) in &self.list {
            screen.finding(finding);
        }
        let count = |severity| self.list.iter().filter(|(_, finding)| finding.severity == severity).count();
        let errors = count(Severity::Error);
        if errors > 0 {
            screen.refusal(&format!("{}: nothing was started", plural(errors, "error")));
        }
    }
}

/// An error of a port as a finding, and who has to mend it.
pub(crate) fn of_port(error: &ConnectorError, what: &str) -> (Blame, Finding) {
    let mut message = format!("{what}: {}", error.message);
    let mut cause = error.cause.as_deref().map(|cause| cause as &dyn std::error::Error);
    while let Some(inner) = cause {
        message.push_str(": ");
        message.push_str(&inner.to_string());
        cause = inner.source();
    }
    let blame = match error.class {
        StopClass::Config | StopClass::Plugin | StopClass::Schema => Blame::Config,
        _ => Blame::Environment,
    };
    (blame, Finding::error(message, error.instruction.clone()))
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_wrote_comes_before_the_world() {
        let mut findings = Findings::default();
        assert_eq!(findings.exit_code(), None);
        findings.add(Blame::Config, Finding::warning("w", ""));
        assert_eq!(findings.exit_code(), None);
        findings.add(Blame::Environment, Finding::error("e", ""));
        assert_eq!(findings.exit_code(), Some(3));
        findings.add(Blame::Config, Finding::error("c", ""));
        assert_eq!(findings.exit_code(), Some(2));
    }
}
