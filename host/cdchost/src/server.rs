//! The control surface: HTTP over a unix socket that only this user can open.

mod status;

use std::os::unix::net::UnixListener;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use cdchost_connector::{Clock, StopClass};
use cdchost_pipeline::{PipelineControl, PipelineStatus, Reason};
use serde_json::{Value, json};
use tokio::sync::watch;

pub(crate) use self::status::{SinkIdentity, hex, lag_ms, phase_name};

/// What the server shows and asks.
#[derive(Debug)]
pub(crate) struct Surface {
    pub(crate) pipeline: String,
    pub(crate) sinks: Vec<SinkIdentity>,
    pub(crate) status: watch::Receiver<PipelineStatus>,
    pub(crate) control: PipelineControl,
    pub(crate) clock: Arc<dyn Clock>,
}

/// Answers until the task is dropped.
pub(crate) async fn serve(listener: UnixListener, surface: Surface) -> std::io::Result<()> {
    let listener = tokio::net::UnixListener::from_std(listener)?;
    axum::serve(listener, router(surface)).await
}

fn router(surface: Surface) -> Router {
    Router::new()
        .route("/v1/status", get(show))
        .route("/v1/checkpoint", post(checkpoint))
        .fallback(nothing_here)
        .method_not_allowed_fallback(other_method)
        .with_state(Arc::new(surface))
}

async fn show(State(surface): State<Arc<Surface>>) -> Json<Value> {
    let now = surface.clock.now_micros();
    let status = surface.status.borrow().clone();
    Json(status::status(&surface.pipeline, &surface.sinks, &status, now))
}

async fn checkpoint(State(surface): State<Arc<Surface>>) -> Response {
    match surface.control.checkpoint().await {
        Ok(epoch) => Json(json!({ "epoch": epoch.0, "committed": true })).into_response(),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "error": error(&reason) }))).into_response(),
    }
}

async fn nothing_here() -> Response {
    refuse(StatusCode::NOT_FOUND, "unknown-path", "there is nothing at this path")
}

async fn other_method() -> Response {
    refuse(StatusCode::METHOD_NOT_ALLOWED, "unknown-method", "this path does not take this method")
}

fn refuse(code: StatusCode, name: &str, message: &str) -> Response {
    let reason = Reason {
        class: StopClass::Config,
        code: name.to_owned(),
        message: message.to_owned(),
        instruction: "ask GET /v1/status or POST /v1/checkpoint".to_owned(),
    };
    (code, Json(json!({ "error": error(&reason) }))).into_response()
}

/// A reason as it stands in answers.
pub(crate) fn error(reason: &Reason) -> Value {
    json!({
        "class": reason.class.name(),
        "code": reason.code,
        "message": reason.message,
        "instruction": reason.instruction,
    })
}
