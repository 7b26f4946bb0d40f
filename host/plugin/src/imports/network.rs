//! Import `network`: every connection is denied, since no pipeline file can grant one yet.

use wasmtime::component::Resource;

use super::GuestState;
use crate::bindings::v0_1::cdchost::plugin::network::{Host, HostConnection, NetError, TlsOptions};

/// A connection; none can come to be while all are denied.
#[derive(Debug)]
#[expect(unreachable_pub, reason = "the generated bindings export it again")]
pub enum Connection {}

impl Host for GuestState {}

impl HostConnection for GuestState {
    async fn connect(
        &mut self,
        host: String,
        port: u16,
        _tls: Option<TlsOptions>,
        _timeout_ms: u32,
    ) -> wasmtime::Result<Result<Resource<Connection>, NetError>> {
        let host = super::log::plain(&host);
        Ok(Err(NetError::Denied(format!("{host}:{port} is not granted: plugins have no network access yet"))))
    }

    async fn read(
        &mut self,
        connection: Resource<Connection>,
        _max: u32,
        _timeout_ms: u32,
    ) -> wasmtime::Result<Result<Vec<u8>, NetError>> {
        match *self.table.get(&connection)? {}
    }

    async fn write(
        &mut self,
        connection: Resource<Connection>,
        _data: Vec<u8>,
        _timeout_ms: u32,
    ) -> wasmtime::Result<Result<(), NetError>> {
        match *self.table.get(&connection)? {}
    }

    async fn drop(&mut self, connection: Resource<Connection>) -> wasmtime::Result<()> {
        self.table.delete(connection)?;
        Ok(())
    }
}
