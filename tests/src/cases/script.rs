//! A case's SQL: statements, and between them what the harness is to do.

use anyhow::{Context, Result, bail};

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Run a statement.
    Sql(String),
    /// Act on the program or the server.
    Do(Action),
}

/// What a line `-- @word` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Wait until the program has read all that the server has.
    WaitCaughtUp,
    /// Have a checkpoint made and wait for its commit.
    Checkpoint,
    /// `kill -9` the program.
    KillHost,
    /// Stop the program in order.
    StopHost,
    /// Start the program.
    StartHost,
    /// Hold the program still.
    PauseSource,
    /// Let it go on.
    ResumeSource,
    /// Restart the server.
    RestartServer,
    /// Remove all of the server's log files but the newest.
    PurgeBinlogs,
}

/// A case's file, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Script {
    /// What to do, in order.
    pub(super) steps: Vec<Step>,
    /// Patterns of the tables to capture.
    pub(super) capture: Vec<String>,
    /// Settings of the pipeline: key and value.
    pub(super) options: Vec<(String, String)>,
    /// The case needs a server that has never seen it.
    pub(super) once: bool,
}

impl Script {
    /// Reads the text of a file. Words that are not known are an error: a case must not be weaker than it looks.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut script = Self::default();
        let mut rest = text;
        let mut statement = String::new();
        while let Some(next) = rest.chars().next() {
            let taken = match next {
                ';' => {
                    script.end(&mut statement);
                    1
                }
                '\'' | '"' | '`' => quoted(rest, next),
                '#' => line(rest),
                '-' if rest.starts_with("-- ") || rest.starts_with("--\n") => {
                    let comment = &rest[..line(rest)];
                    if let Some(word) = comment.strip_prefix("-- @") {
                        script.end(&mut statement);
                        script.word(word.trim())?;
                    }
                    comment.len()
                }
                '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
                _ => next.len_utf8(),
            };
            let is_comment = matches!(next, '#' | ';') || next == '-' && taken > 1;
            if !is_comment {
                statement.push_str(&rest[..taken]);
            }
            rest = &rest[taken..];
        }
        script.end(&mut statement);
        Ok(script)
    }

    fn end(&mut self, statement: &mut String) {
        let text = statement.trim();
        if !text.is_empty() {
            self.steps.push(Step::Sql(text.to_owned()));
        }
        statement.clear();
    }

    fn word(&mut self, text: &str) -> Result<()> {
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let action = match word {
            "capture" => {
                self.capture.extend(rest.split_whitespace().map(str::to_owned));
                return Ok(());
            }
            "option" => {
                let (key, value) = rest.split_once('=').context("`-- @option` without `key=value`")?;
                self.options.push((key.trim().to_owned(), value.trim().to_owned()));
                return Ok(());
            }
            "once" => {
                self.once = true;
                return Ok(());
            }
            // A heartbeat is what tells the program of a quiet server's position: then it has caught up.
            "wait-caught-up" | "wait-heartbeat" => Action::WaitCaughtUp,
            "checkpoint" => Action::Checkpoint,
            "kill-host" => Action::KillHost,
            "stop-host" => Action::StopHost,
            "start-host" => Action::StartHost,
            "pause-source" => Action::PauseSource,
            "resume-source" => Action::ResumeSource,
            "restart-server" => Action::RestartServer,
            "purge-binlogs-to-current" => Action::PurgeBinlogs,
            other => bail!("`-- @{other}` is not known"),
        };
        self.steps.push(Step::Do(action));
        Ok(())
    }
}

/// Bytes of a quoted stretch with its quotes.
fn quoted(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == '\\' && quote != '`' {
            chars.next();
        } else if c == quote {
            return at + 1;
        }
    }
    text.len()
}

/// Bytes of a line without its end.
fn line(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(text: &str) -> Vec<String> {
        let script = Script::parse(text).unwrap();
        script.steps.into_iter().map(|step| if let Step::Sql(sql) = step { sql } else { panic!("{step:?}") }).collect()
    }

    #[test]
    fn statements_end_at_semicolons_outside_of_quotes() {
        assert_eq!(
            sql("a 'x;''y\\';' ; b `;`; /*!50003 c;d */ e;\n;# f;\n g -- h;i\n, j"),
            ["a 'x;''y\\';'", "b `;`", "/*!50003 c;d */ e", "g \n, j",]
        );
    }

    #[test]
    fn words_stand_between_statements() {
        let script =
            Script::parse("-- @capture a.* b.t\n-- @option source.chunk.rows=2\n-- note\nx;\n-- @kill-host\ny")
                .unwrap();
        assert_eq!(script.capture, ["a.*", "b.t"]);
        assert_eq!(script.options, [("source.chunk.rows".to_owned(), "2".to_owned())]);
        let steps = [Step::Sql("x".into()), Step::Do(Action::KillHost), Step::Sql("y".into())];
        assert_eq!(script.steps, steps);
        assert!(Script::parse("-- @kill-hosts").is_err());
    }
}
