//! Log lines on standard error: text for people, JSON for programs.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::{
    Layer, filter::Targets, fmt, layer::SubscriberExt, util::SubscriberInitExt,
};

use crate::args::LogFormat;

/// Environment variable that chooses what is logged: a level, or `target=level` several times with commas.
const FILTER_VARIABLE: &str = "PILLARBOX_LOG";

/// Starts logging. `level` is what is logged unless the environment says otherwise.
pub(crate) fn start(format: LogFormat, level: tracing::Level) {
    let filter = std::env::var(FILTER_VARIABLE)
        .ok()
        .and_then(|text| text.parse::<Targets>().ok())
        .unwrap_or_else(|| Targets::new().with_default(level));
    let lines = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    // A second start (several commands in one test process) keeps the first one's subscriber.
    let _ = match format {
        LogFormat::Text => tracing_subscriber::registry()
            .with(lines.with_target(false).with_filter(filter))
            .try_init(),
        LogFormat::Json => tracing_subscriber::registry()
            .with(
                lines
                    .json()
                    .with_current_span(true)
                    .with_span_list(true)
                    .with_filter(filter),
            )
            .try_init(),
    };
}
