//! Child processes and folders that never outlive this process, however it ends.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::wait;

/// A shell that is told what belongs to us. When the pipe to it breaks, which no kind of death prevents, it kills
/// those processes and removes those folders.
const SCRIPT: &str = r#"
pids=" "; dirs=""
while read -r verb rest; do
  case $verb in
    pid)  pids="$pids$rest " ;;
    gone) pids="${pids%% $rest *} ${pids#* $rest }" ;;
    dir)  dirs="$dirs$rest
" ;;
  esac
done
[ -z "${pids# }" ] || kill -9 $pids 2>/dev/null
printf %s "$dirs" | while read -r dir; do
  for again in 1 2 3 4 5; do rm -rf "$dir" 2>/dev/null && break; sleep 0.2; done
done
"#;

fn tell(line: &str) -> Result<()> {
    static SHELL: OnceLock<Mutex<Option<ChildStdin>>> = OnceLock::new();
    let shell = SHELL.get_or_init(|| {
        let child = Command::new("sh")
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        Mutex::new(child.ok().and_then(|child| child.stdin))
    });
    let mut shell = shell.lock().unwrap_or_else(PoisonError::into_inner);
    let pipe = shell.as_mut().context("the shell that cleans up did not start")?;
    writeln!(pipe, "{line}").context("the shell that cleans up is gone")
}

/// A new empty folder that goes away with this process, or when dropped.
#[derive(Debug)]
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// Makes it, with `name` in its name.
    pub fn new(name: &str) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix(&format!("cdchost-{name}-")).tempdir()?;
        tell(&format!("dir {}", folder.path().display()))?;
        Ok(Self(folder))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A path inside it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// A running child. It is in a process group of its own, so that Ctrl-C reaches only us, and is killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    ended: Option<ExitStatus>,
}

impl Process {
    /// Starts it.
    pub fn start(command: &mut Command) -> Result<Self> {
        let child = command.process_group(0).spawn().with_context(|| format!("start {command:?}"))?;
        tell(&format!("pid {}", child.id()))?;
        Ok(Self { child, ended: None })
    }

    /// The system's number for it.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The pipes that the command asked for.
    pub fn pipes(&mut self) -> &mut Child {
        &mut self.child
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait()?;
            if self.ended.is_some() {
                tell(&format!("gone {}", self.child.id()))?;
            }
        }
        Ok(self.ended)
    }

    /// Sends a signal by its name (`TERM`, `STOP`, …); an ended process takes none.
    pub fn signal(&mut self, name: &str) -> Result<()> {
        if self.ended()?.is_none() {
            let sent = Command::new("sh").args(["-c", "kill -$0 $1", name, &self.id().to_string()]).status()?;
            ensure!(sent.success(), "signal {name} was not sent");
        }
        Ok(())
    }

    /// Ends it at once, as a power cut would, and waits for that.
    pub fn kill(&mut self) -> Result<ExitStatus> {
        if self.ended()?.is_none() {
            self.child.kill()?;
            self.ended = Some(self.child.wait()?);
            tell(&format!("gone {}", self.child.id()))?;
        }
        self.ended.context("a killed process has ended")
    }

    /// Waits until it ends by itself.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        wait::until("the process ends", limit, || self.ended())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A process that cannot be killed now is killed by the shell.
        let _ = self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_alive(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}")).exists()
    }

    #[test]
    fn a_dropped_process_is_gone() {
        let process = Process::start(Command::new("sleep").arg("1000")).unwrap();
        let pid = process.id();
        assert!(is_alive(pid));
        drop(process);
        assert!(!is_alive(pid));
    }

    /// The shell is the last line: it must act when its pipe breaks, on what was not reported gone, and on that alone.
    #[test]
    fn the_shell_cleans_up_when_its_pipe_breaks() {
        let folder = tempfile::tempdir().unwrap().keep();
        let mut lost = Command::new("sleep").arg("1000").spawn().unwrap();
        let mut kept = Command::new("sleep").arg("1000").spawn().unwrap();
        let mut shell = Command::new("sh").args(["-c", SCRIPT]).stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = shell.stdin.take().unwrap();
        writeln!(pipe, "pid {}\npid {}\ngone {}\ndir {}", kept.id(), lost.id(), kept.id(), folder.display()).unwrap();
        drop(pipe);
        shell.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&lost.wait().unwrap()), Some(9));
        assert!(!folder.exists());
        assert!(kept.try_wait().unwrap().is_none());
        kept.kill().unwrap();
        kept.wait().unwrap();
    }
}
