//! Telling operators of something.

use crate::elements::Alarm;

messages! {
    /// Carries an alarm (root element `AlarmMessage`).
    plain AlarmMessage {
        /// The alarm (`Alarm`).
        alarm: required Alarm = "Alarm",
    }
}
