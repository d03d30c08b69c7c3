//! A moving line on a terminal while something takes long; nothing on a pipe.

use indicatif::{ProgressBar, ProgressStyle};
use pillarbox_client::Event;

use crate::output::in_words;

/// Shows what an operation is at, on standard error, if that is a terminal.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// For an operation of this name.
    pub(crate) fn start(what: &str) -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// What it is at now.
    pub(crate) fn set(&self, event: &Event) {
        self.0.set_message(in_words(&event.to_string()));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

const TICK: std::time::Duration = std::time::Duration::from_millis(200);
