//! A configured sink plugin: gives out committers and writers, each with an instance of its own.

use std::sync::Arc;

use async_trait::async_trait;
use cdchost_connector::{Committer, ConnectorError, Sink, SinkWriter};
use cdchost_model::Generation;

use super::sink_committer::PluginCommitter;
use super::sink_writer::PluginWriter;
use super::{Instance, Site};
use crate::imports::Place;

/// See [`crate::Plugin::sink`].
#[derive(Debug)]
pub(crate) struct PluginSink {
    site: Arc<Site>,
    digest: [u8; 32],
}

impl PluginSink {
    pub(crate) fn new(site: Arc<Site>, digest: [u8; 32]) -> Self {
        Self { site, digest }
    }
}

#[async_trait]
impl Sink for PluginSink {
    fn id(&self) -> &str {
        self.site.id()
    }

    fn digest(&self) -> [u8; 32] {
        self.digest
    }

    fn version(&self) -> String {
        self.site.version().into()
    }

    async fn committer(&self, generation: Generation) -> Result<Box<dyn Committer>, ConnectorError> {
        let place = Place { subtask: 0, parallelism: 1, generation: generation.0 };
        let instance = Instance::start(Arc::clone(&self.site), place).await?;
        Ok(Box::new(PluginCommitter::new(instance)))
    }

    async fn writer(
        &self,
        generation: Generation,
        subtask: u32,
        parallelism: u32,
    ) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        let place = Place { subtask, parallelism, generation: generation.0 };
        let instance = Instance::start(Arc::clone(&self.site), place).await?;
        Ok(Box::new(PluginWriter::new(instance)))
    }
}
