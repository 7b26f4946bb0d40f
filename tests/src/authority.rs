//! Certificates of an authority of our own, made by openssl for one test run.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use cdchost_tools::{Sign, Tool, need, run};

use crate::watchdog::Folder;

const OPENSSL: Tool = Tool { sign: Sign::Program("openssl"), packages: &["openssl"] };

/// An authority, a server's certificate from it for 127.0.0.1, and an authority that signed nothing.
#[derive(Debug)]
pub struct Authority {
    folder: Folder,
}

impl Authority {
    /// Makes them.
    pub fn new() -> Result<Self> {
        need(&[OPENSSL])?;
        let folder = Folder::new("authority")?;
        let openssl = |arguments: &str| {
            let mut command = Command::new("openssl");
            run(command.args(arguments.split(' ')).current_dir(folder.join(".")))
        };
        for (name, subject) in [("ca", "/CN=ours"), ("other", "/CN=other")] {
            openssl(&format!(
                "req -x509 -newkey rsa:2048 -nodes -days 2 -subj {subject} -keyout {name}.key -out {name}.pem"
            ))?;
        }
        openssl("req -newkey rsa:2048 -nodes -subj /CN=database -keyout server.key -out server.csr")?;
        std::fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1\n")?;
        openssl(
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.pem",
        )?;
        Ok(Self { folder })
    }

    /// One of `ca.pem`, `other.pem`, `server.pem`, `server.key`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}
