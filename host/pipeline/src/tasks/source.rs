//! Runs the source and hands its events to the dispatcher.

use async_trait::async_trait;
use cdchost_connector::{ConnectorError, EventSender, Source, SourceContext, SourceEvent, StopClass};

use crate::channel::Sender;
use crate::failure::{Failure, RUN_ENDING, bug};
use crate::metrics::PipelineMetrics;

/// The source's way into the pipeline.
struct Events {
    to: Sender<SourceEvent>,
    metrics: PipelineMetrics,
}

#[async_trait]
impl EventSender for Events {
    async fn send(&mut self, event: SourceEvent) -> Result<(), ConnectorError> {
        let sent = match &event {
            SourceEvent::Batch(batch) => {
                let bytes = batch.bytes();
                self.metrics.source_rows.inc_by(batch.rows() as u64);
                self.metrics.source_bytes.inc_by(bytes as u64);
                self.to.send_rows(event, bytes).await
            }
            _ => self.to.send_control(event).await,
        };
        sent.map_err(|_| ConnectorError::restart(StopClass::Bug, RUN_ENDING, "the run is ending"))
    }
}

/// Ends only with the run.
pub(crate) async fn run(
    source: Box<dyn Source>,
    to: Sender<SourceEvent>,
    context: SourceContext,
    metrics: PipelineMetrics,
) -> Result<(), Failure> {
    let mut events = Events { to, metrics };
    source.run(&mut events, context).await?;
    Err(bug("source-ended", "the source ended though it was not told to"))
}
