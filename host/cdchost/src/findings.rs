//! What is found before a pipeline starts: gathered, shown together, turned into an exit code.

use cdchost_config::{Finding, Place, Severity};
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
    /// These, and no others.
    pub(crate) fn of(blame: Blame, findings: impl IntoIterator<Item = Finding>) -> Self {
        Self { list: findings.into_iter().map(|finding| (blame, finding)).collect() }
    }

    /// All, with who has to mend them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(Blame, Finding)> {
        self.list.iter()
    }

    /// How many errors there are, in words.
    pub(crate) fn error_count(&self) -> String {
        plural(self.iter().filter(|(_, finding)| finding.severity == Severity::Error).count(), "error")
    }

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
        if self.exit_code().is_some() {
            screen.refusal(&format!("{}: nothing was started", self.error_count()));
        }
    }
}

/// An error of a port as findings, and who has to mend them. A port that has several tells them a line each, with an
/// instruction for each.
pub(crate) fn of_port(error: &ConnectorError, what: &str, place: Option<&Place>) -> (Blame, Vec<Finding>) {
    let blame = match error.class {
        StopClass::Config | StopClass::Plugin | StopClass::Schema => Blame::Config,
        _ => Blame::Environment,
    };
    let mut messages: Vec<String> = error.message.lines().map(str::to_owned).collect();
    let instructions: Vec<&str> = error.instruction.lines().collect();
    if messages.len() != instructions.len() {
        messages = vec![error.message.clone()];
    }
    if let Some(last) = messages.last_mut() {
        let mut cause = error.cause.as_deref().map(|cause| cause as &dyn std::error::Error);
        while let Some(inner) = cause {
            last.push_str(": ");
            last.push_str(&inner.to_string());
            cause = inner.source();
        }
    }
    let one = messages.len() == 1;
    let finding = |(index, message): (usize, String)| {
        let instruction =
            if one { error.instruction.as_str() } else { instructions.get(index).copied().unwrap_or_default() };
        Finding::error(format!("{what}: {message}"), instruction).at(place.cloned())
    };
    (blame, messages.into_iter().enumerate().map(finding).collect())
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

    #[test]
    fn several_findings_of_a_port_are_several() {
        let error = ConnectorError::stop(StopClass::Source, "c", "a is off\nb is off").with_instruction("set a\nset b");
        let (blame, findings) = of_port(&error, "source", None);
        let said: Vec<_> = findings.iter().map(|f| (f.message.as_str(), f.instruction.as_str())).collect();
        assert_eq!(blame, Blame::Environment);
        assert_eq!(said, [("source: a is off", "set a"), ("source: b is off", "set b")]);
    }

    #[test]
    fn a_cause_follows_its_message() {
        let error = ConnectorError::stop(StopClass::Config, "c", "no").with_cause(std::io::Error::other("deep"));
        let (blame, findings) = of_port(&error, "sink x", None);
        assert_eq!((blame, findings[0].message.as_str()), (Blame::Config, "sink x: no: deep"));
    }
}
