//! Export `sink-committer` as a [`Committer`].

use async_trait::async_trait;
use cdchost_connector::{Capabilities, CommitOutcome, Committer, ConnectorError, Recovered, SchemaChangeRequest};
use cdchost_model::{Committable, Cut};

use super::Instance;
use super::capabilities::capabilities;
use crate::bindings::v0_1::cdchost::plugin::sink_types as wit;
use crate::convert::{self, SchemaParts};

/// The committer of one sink, in an instance of its own.
pub(super) struct PluginCommitter {
    instance: Instance,
}

impl PluginCommitter {
    pub(super) fn new(instance: Instance) -> Self {
        Self { instance }
    }

    /// One outcome an item, in order.
    fn outcomes(
        &mut self,
        function: &'static str,
        told: Vec<wit::Outcome>,
        items: usize,
    ) -> Result<Vec<CommitOutcome>, ConnectorError> {
        if told.len() != items {
            let how = format!("gives {} outcomes for {items} committables", told.len());
            return Err(self.instance.broke(function, &how));
        }
        let faults = &self.instance.faults;
        let outcome = |told| match told {
            wit::Outcome::Committed => CommitOutcome::Committed,
            wit::Outcome::AlreadyCommitted => CommitOutcome::AlreadyCommitted,
            wit::Outcome::RetryAfter(ms) => CommitOutcome::RetryAfter(ms),
            wit::Outcome::Lost(why) => CommitOutcome::Lost(faults.clean(&why)),
            wit::Outcome::Failed(error) => CommitOutcome::Failed(faults.told(function, error, 0).0),
        };
        Ok(told.into_iter().map(outcome).collect())
    }
}

#[async_trait]
impl Committer for PluginCommitter {
    async fn open(&mut self) -> Result<Capabilities, ConnectorError> {
        let told = self
            .instance
            .call("sink-committer.open", |live| Box::pin(live.guest.sink_committer().call_open(&mut live.store)));
        let told = told.await?;
        let faults = &self.instance.faults;
        capabilities(told, |text| faults.clean(text)).map_err(|how| self.instance.broke("sink-committer.open", &how))
    }

    async fn recover(&mut self, restored: Option<&Cut>, pending: &[Committable]) -> Result<Recovered, ConnectorError> {
        const FUNCTION: &str = "sink-committer.recover";
        let (restored, items) = (restored.cloned(), pending.to_vec());
        let called = self.instance.call(FUNCTION, move |live| {
            Box::pin(async move {
                let (cut, items) = (restored.as_ref().map(convert::cut), params(&items));
                live.guest.sink_committer().call_recover(&mut live.store, cut, &items).await
            })
        });
        let (outcomes, progress) = called.await?;
        let outcomes = self.outcomes(FUNCTION, outcomes, pending.len())?;
        let progress = progress.map(convert::progress).transpose();
        let progress = progress.map_err(|how| self.instance.broke(FUNCTION, &how))?;
        Ok(Recovered { outcomes, progress })
    }

    async fn apply_schema_change(&mut self, request: &SchemaChangeRequest) -> Result<(), ConnectorError> {
        let request = request.clone();
        let called = self.instance.call("sink-committer.apply-schema-change", move |live| {
            Box::pin(async move {
                let before = request.before.as_deref().map(SchemaParts::new);
                let after = request.after.as_deref().map(SchemaParts::new);
                let (before, after) = (before.as_ref().map(|s| s.wit(0)), after.as_ref().map(|s| s.wit(0)));
                let (cut, change) = (convert::cut(&request.at), convert::change(&request.change));
                let guest = live.guest.sink_committer();
                guest.call_apply_schema_change(&mut live.store, &request.id, cut, before, change, after).await
            })
        });
        called.await
    }

    async fn commit(&mut self, at: &Cut, items: &[Committable]) -> Result<Vec<CommitOutcome>, ConnectorError> {
        const FUNCTION: &str = "sink-committer.commit";
        let (cut, owned) = (at.clone(), items.to_vec());
        let called = self.instance.call(FUNCTION, move |live| {
            Box::pin(async move {
                let guest = live.guest.sink_committer();
                guest.call_commit(&mut live.store, convert::cut(&cut), &params(&owned)).await
            })
        });
        let outcomes = called.await?;
        self.outcomes(FUNCTION, outcomes, items.len())
    }

    async fn abort(&mut self, items: &[Committable]) -> Result<(), ConnectorError> {
        let items = items.to_vec();
        let called = self.instance.call("sink-committer.abort", move |live| {
            Box::pin(async move { live.guest.sink_committer().call_abort(&mut live.store, &params(&items)).await })
        });
        called.await
    }

    async fn on_savepoint(&mut self, id: &str, at: &Cut) -> Result<(), ConnectorError> {
        let (id, cut) = (id.to_owned(), at.clone());
        let called = self.instance.call("sink-committer.on-savepoint", move |live| {
            Box::pin(async move {
                let guest = live.guest.sink_committer();
                guest.call_on_savepoint(&mut live.store, &id, convert::cut(&cut)).await
            })
        });
        called.await
    }

    async fn close(&mut self) {
        let ended = self
            .instance
            .end(|live| Box::pin(async { Ok(Ok(live.guest.sink_committer().call_close(&mut live.store).await?)) }));
        ended.await;
    }
}

fn params(items: &[Committable]) -> Vec<wit::CommittableParam<'_>> {
    items.iter().map(convert::item).collect()
}
