//! The source as the engine sees it.

use async_trait::async_trait;
use cdchost_config::MysqlConfig;
use cdchost_connector::{
    ConnectorError, Containment, OpenedSource, SourceConnector, SourceEnd, SourceRestore, StopClass,
};
use cdchost_model::SourceOffset;

/// A configured MySQL source.
#[derive(Debug)]
pub struct MysqlSource {
    config: MysqlConfig,
    end: SourceEnd,
}

impl MysqlSource {
    /// A source for this configuration. `end` says how a bounded run ends; `startup.mode = "snapshot"` ends at the
    /// snapshot where `end` is [`SourceEnd::Never`].
    pub fn new(config: MysqlConfig, end: SourceEnd) -> Self {
        Self { config, end }
    }
}

#[async_trait]
impl SourceConnector for MysqlSource {
    async fn open(&self, _restore: Option<SourceRestore>) -> Result<OpenedSource, ConnectorError> {
        Err(ConnectorError::stop(StopClass::Bug, "mysql-not-there", "the source is not there yet"))
    }

    fn compare(&self, _one: &SourceOffset, _other: &SourceOffset) -> Result<Containment, ConnectorError> {
        Err(ConnectorError::stop(StopClass::Bug, "mysql-not-there", "the source is not there yet"))
    }

    fn describe(&self, _offset: &SourceOffset) -> String {
        String::new()
    }
}
