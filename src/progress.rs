//! A moving line on a terminal while something takes long; nothing on a pipe.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use pillarbox_client::{Event, Transferred};

use crate::output::in_words;

/// Shows what an operation is at and how many bytes have been moved, on standard error, if that is a terminal.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// For an operation of this name.
    pub(crate) fn start(what: &str) -> Self {
        let bar = ProgressBar::new_spinner();
        style(&bar, WAITING);
        bar.set_message(in_words(what));
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// What it is at now.
    pub(crate) fn set(&self, event: &Event) {
        self.0.set_message(in_words(&event.to_string()));
    }

    /// How far its file is on the way to or from the exchange.
    pub(crate) fn moved(&self, moved: Transferred) {
        let Transferred { bytes, total } = moved;
        if total > 0 && self.0.length() != Some(total) {
            self.0.set_length(total);
            style(&self.0, MOVING);
        }
        self.0.set_position(bytes);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn style(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

const WAITING: &str = "{spinner} {elapsed} {wide_msg}";
const MOVING: &str =
    "{spinner} {elapsed} [{bar:20}] {bytes}/{total_bytes} ({bytes_per_sec}) {wide_msg}";
const TICK: Duration = Duration::from_millis(200);
