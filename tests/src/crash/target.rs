//! What the rounds write to, and who judges it.

use anyhow::{Result, bail};

use crate::binlog::Place;
use crate::lake::LakeReader;
use crate::ledger::{self, Books};
use crate::lines;
use crate::pipeline::{Pipeline, PipelineSpec};
use crate::server::Server;
use crate::verdict::{self, Verdict};

/// A component to write with, and its judge.
#[derive(Debug)]
pub(crate) enum Target {
    /// A lake, by a reader of other people.
    Lake(LakeReader),
    /// Files of lines, by the server's log of changes.
    Files,
}

impl Target {
    /// The target of `--sink NAME`.
    pub(crate) fn named(sink: &str) -> Result<Self> {
        Ok(match sink {
            "paimon" => Self::Lake(LakeReader::pypaimon()?),
            "file" => Self::Files,
            other => bail!("--sink {other} is not offered: paimon, file"),
        })
    }

    /// A pipeline from all tables of `database` to it.
    pub(crate) fn spec(&self, source: &str, database: &str) -> PipelineSpec {
        match self {
            Self::Lake(_) => PipelineSpec::into_lake(source, database),
            Self::Files => PipelineSpec::into_files(source, database),
        }
    }

    /// Compares it with its source, whose log the pipeline met behind `from`. With `plant`, damages the comparison on
    /// purpose and counts a difference for each damage that is not found.
    pub(crate) async fn compare(
        &mut self,
        server: &Server,
        pipeline: &Pipeline,
        (database, from): (&str, &Place),
        plant: bool,
    ) -> Result<Verdict> {
        match self {
            Self::Lake(reader) => {
                let mut verdict = verdict::compare(server, pipeline, database, std::slice::from_mut(reader)).await?;
                if plant {
                    verdict::plant(server, pipeline, database, reader, &mut verdict).await?;
                }
                Ok(verdict)
            }
            Self::Files => {
                let books = Books::open(server, &pipeline.files(), database, from).await?;
                let mut verdict = ledger::compare(&books)?;
                if plant {
                    ledger::plant(&books, &mut verdict)?;
                }
                Ok(verdict)
            }
        }
    }

    /// What a run that has stopped at this epoch left behind and should not have.
    pub(crate) fn left_behind(&self, pipeline: &Pipeline, database: &str, epoch: u64) -> Result<Vec<String>> {
        match self {
            Self::Lake(_) => Ok(Vec::new()),
            Self::Files => lines::litter(&pipeline.files(), database, epoch),
        }
    }
}
