//! Where ours is deliberately not as recorded.

use std::collections::BTreeSet;

/// A deliberate difference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Difference {
    /// Conversations in which it must occur; all together if none is named.
    pub(crate) in_conversations: &'static [&'static str],
    /// The difference as it is found: sender, message type, and a line that only the recording (`-`) or only ours
    /// (`+`) has. A star stands for any text.
    pub(crate) line: &'static str,
    pub(crate) reason: &'static str,
}

/// Differences sorted into those that are deliberate and those that are not.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    used: BTreeSet<(usize, String)>,
    unexpected: Vec<String>,
}

impl Judge {
    /// Gives the number of deliberate differences that occurred.
    pub(crate) fn judge(
        &mut self,
        table: &[Difference],
        conversation: &str,
        lines: &[String],
    ) -> usize {
        let mut used = BTreeSet::new();
        for line in lines {
            let known = table.iter().position(|it| {
                let named = it.in_conversations;
                (named.is_empty() || named.contains(&conversation)) && fits(it.line, line)
            });
            match known {
                Some(number) => {
                    used.insert(number);
                }
                None => self.unexpected.push(format!("{conversation}: {line}")),
            }
        }
        let count = used.len();
        self.used.extend(
            used.into_iter()
                .map(|number| (number, conversation.to_owned())),
        );
        count
    }

    /// Prints what differed, and in how many conversations.
    pub(crate) fn report(&self, table: &[Difference]) {
        for (number, difference) in table.iter().enumerate() {
            let times = self.used.iter().filter(|(used, _)| *used == number).count();
            println!("{times:4} {}: {}", difference.line, difference.reason);
        }
        for line in &self.unexpected {
            println!("     NOT LISTED {line}");
        }
    }

    /// Nothing differed that is not listed, and everything that is listed did, wherever it is said to.
    #[track_caller]
    pub(crate) fn assert_all_as_listed(&self, table: &[Difference]) {
        let faults = self.faults(table);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    /// Nothing differed that is not listed.
    #[track_caller]
    pub(crate) fn assert_nothing_unlisted(&self) {
        assert!(self.unexpected.is_empty(), "{}", self.unexpected.join("\n"));
    }

    fn faults(&self, table: &[Difference]) -> Vec<String> {
        let mut faults = self.unexpected.clone();
        for (number, difference) in table.iter().enumerate() {
            let occurred =
                |conversation: &&str| self.used.contains(&(number, (*conversation).to_owned()));
            let anywhere = self.used.iter().any(|(used, _)| *used == number);
            let named = difference.in_conversations;
            let missed: Vec<&str> = named.iter().filter(|it| !occurred(it)).copied().collect();
            if !missed.is_empty() || !anywhere {
                faults.push(format!("no longer: {} {missed:?}", difference.line));
            }
        }
        faults
    }
}

/// Whether a text is as the pattern says, whose stars stand for any text.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.is_empty()
}

/// How our pillars' answers differ.
pub(crate) const OF_PILLARS: &[Difference] = &[
    anywhere(
        "* *FinalResponse -(delivery)=NON_PERSISTENT(1)",
        "what nobody would ask for again survives a restart of the bus",
    ),
    anywhere("* *FinalResponse +(delivery)=PERSISTENT(2)", "the same"),
    anywhere(
        "* AlarmMessage -(delivery)=NON_PERSISTENT(1)",
        "an alarm survives a restart of the bus",
    ),
    anywhere("* AlarmMessage +(delivery)=PERSISTENT(2)", "the same"),
    anywhere(
        "* GetFileProgressResponse +ChecksumDataForExistingFile*",
        "the schema has a place for the checksum, and a client can tell whether it got what the pillar has",
    ),
    Difference {
        in_conversations: &["corrupt-get-checksums-sha1"],
        line: "file1-pillar +AlarmMessage CHECKSUM_ALARM",
        reason: "bytes that are not the expected ones are noticed when they are read",
    },
    Difference {
        in_conversations: &["raw-identify-getchecksums-other"],
        line: "* IdentifyPillarsForGetChecksumsResponse -FileIDs/AllFileIDs=",
        reason: "the element's presence says everything, whatever its text; it is echoed as it is usually written",
    },
    Difference {
        in_conversations: &["raw-identify-getchecksums-other"],
        line: "* IdentifyPillarsForGetChecksumsResponse +FileIDs/AllFileIDs=true",
        reason: "the same",
    },
    Difference {
        in_conversations: &[
            "raw-schema-invalid",
            "raw-minversion-too-new",
            "raw-version-too-old",
        ],
        line: "* +IdentifyPillarsForGetFileResponse REQUEST_NOT_UNDERSTOOD_FAILURE",
        reason: "whoever can be told why the message is refused is told, instead of waiting for its timeout",
    },
    Difference {
        in_conversations: &["raw-schema-invalid", "raw-malformed-xml"],
        line: "* +AlarmMessage INVALID_MESSAGE",
        reason: "a message that can't be read is told of",
    },
    Difference {
        in_conversations: &["raw-minversion-too-new", "raw-version-too-old"],
        line: "* +AlarmMessage INVALID_MESSAGE_VERSION",
        reason: "a peer whose version doesn't go with ours is told of",
    },
    Difference {
        in_conversations: &["raw-put-unknown-collection"],
        line: "* PutFileFinalResponse -ResponseInfo/ResponseCode=FAILURE",
        reason: "a collection that the pillar doesn't serve is the asker's mistake, not a failure of the pillar",
    },
    Difference {
        in_conversations: &["raw-put-unknown-collection"],
        line: "* PutFileFinalResponse +ResponseInfo/ResponseCode=REQUEST_NOT_UNDERSTOOD_FAILURE",
        reason: "the same",
    },
    Difference {
        in_conversations: &["raw-put-unknown-collection"],
        line: "* -AlarmMessage",
        reason: "the same: below the level at which alarms are raised",
    },
    Difference {
        in_conversations: &["raw-put-wrong-size"],
        line: "* PutFileFinalResponse -ResponseInfo/ResponseCode=OPERATION_COMPLETED",
        reason: "a file of another size than announced is not the file",
    },
    Difference {
        in_conversations: &["raw-put-wrong-size"],
        line: "* PutFileFinalResponse +ResponseInfo/ResponseCode=FAILURE",
        reason: "the same",
    },
    Difference {
        in_conversations: &["raw-audit-url"],
        line: "* -GetAuditTrailsFinalResponse",
        reason: "a request has one final answer; the recorded pillar went on to a failure after its success",
    },
    Difference {
        in_conversations: &["raw-audit-url"],
        line: "* -AlarmMessage",
        reason: "the same",
    },
    Difference {
        in_conversations: &[
            "lib-getstatus",
            "pillar-down-getstatus",
            "raw-status-no-collection",
        ],
        line: "alarm-service -IdentifyContributorsForGetStatusResponse",
        reason: "the alarm service is no contributor: the settings name pillars only, so nobody waits for it",
    },
    Difference {
        in_conversations: &["lib-getstatus", "pillar-down-getstatus"],
        line: "alarm-service -GetStatusProgressResponse",
        reason: "the same",
    },
    Difference {
        in_conversations: &["lib-getstatus", "pillar-down-getstatus"],
        line: "alarm-service -GetStatusFinalResponse",
        reason: "the same",
    },
];

/// How our commands end and ask otherwise.
pub(crate) const OF_CLIENT: &[Difference] = &[
    anywhere(
        "client *Request -(delivery)=NON_PERSISTENT(1)",
        "a request for an operation survives a restart of the bus",
    ),
    anywhere("client *Request +(delivery)=PERSISTENT(2)", "the same"),
    Difference {
        in_conversations: &["put-by-url"],
        line: "client *PutFileRequest -FileSize=0",
        reason: "the exchange is asked how long the file is, so that pillars can reserve room for it",
    },
    Difference {
        in_conversations: &["put-by-url"],
        line: "client *PutFileRequest +FileSize=20",
        reason: "the same",
    },
    Difference {
        in_conversations: &[
            "get-checksums-after-delete-one",
            "get-checksums-hmac",
            "get-checksums-sha256",
            "pillar-down-get-checksums",
        ],
        line: "-stdout 2 *All *",
        reason: "a pillar that was asked has not told the checksum, so those that have are named",
    },
    Difference {
        in_conversations: &[
            "get-checksums-after-delete-one",
            "get-checksums-hmac",
            "get-checksums-sha256",
            "pillar-down-get-checksums",
        ],
        line: "+stdout 2 *[*, *] *",
        reason: "the same",
    },
    Difference {
        in_conversations: &["put-by-url-wrong-checksum"],
        line: "client +IdentifyPillarsForPutFileRequest",
        reason: "a file on an exchange is not fetched only to be hashed: every pillar that fetches it compares it",
    },
    Difference {
        in_conversations: &[
            "replace-checksum",
            "replace-file1",
            "replace-missing",
            "replace-wrong-checksum",
        ],
        line: "client IdentifyPillarsForReplaceFileRequest +FileSize=20",
        reason: "the schema has a place for it, and a pillar without room for the file says so at once",
    },
    Difference {
        in_conversations: &["get-file", "get-file-pillar"],
        line: "client +IdentifyPillarsForGetChecksumsRequest",
        reason: "a file takes its place when it was compared with a checksum, and these pillars tell none with it",
    },
    Difference {
        in_conversations: &["get-file", "get-file-pillar"],
        line: "client +GetChecksumsRequest",
        reason: "the same",
    },
    Difference {
        in_conversations: &[
            "replace-checksum",
            "replace-file1",
            "replace-wrong-checksum",
        ],
        line: "client ReplaceFileRequest +ChecksumRequestFor*",
        reason: "equal checksums of the old and the new file tell that there was nothing to replace",
    },
    Difference {
        in_conversations: &["replace-wrong-checksum"],
        line: "client +IdentifyPillarsForGetChecksumsRequest",
        reason: "a pillar that refuses may have the new file already, from an attempt whose end nobody heard of",
    },
    Difference {
        in_conversations: &["pillar-down-get-checksums"],
        line: "client +IdentifyPillarsForGetChecksumsRequest",
        reason: "who is silent for half of its time is asked once more: a request on a topic is lost with whom it misses",
    },
    Difference {
        in_conversations: &["pillar-down-put"],
        line: "client +IdentifyPillarsForPutFileRequest",
        reason: "the same",
    },
];

const fn anywhere(line: &'static str, reason: &'static str) -> Difference {
    Difference {
        in_conversations: &[],
        line,
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*b", "ab", true),
            ("a*", "ab", true),
            ("a*", "b", false),
            ("* +*=c", "x +b=c", true),
            ("* +*=c", "x -b=c", false),
            ("a*b", "aXbXb", true),
            ("a*b", "aXc", false),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn what_is_not_listed_and_what_no_longer_occurs_are_both_faults() {
        let listed = |conversations| {
            [Difference {
                in_conversations: conversations,
                line: "* +A",
                reason: "for the test",
            }]
        };
        let judged = |table: &[Difference], lines: &[&str]| {
            let mut judge = Judge::default();
            let lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
            judge.judge(table, "get", &lines);
            judge.faults(table)
        };
        assert_eq!(judged(&listed(&["get"]), &["x +A"]), [] as [&str; 0]);
        assert_eq!(judged(&listed(&[]), &["x +A"]), [] as [&str; 0]);
        assert_eq!(judged(&listed(&[]), &["x +A", "x -A"]), ["get: x -A"]);
        assert_eq!(judged(&listed(&[]), &[]), ["no longer: * +A []"]);
        assert_eq!(
            judged(&listed(&["get", "put"]), &["x +A"]),
            [r#"no longer: * +A ["put"]"#]
        );
    }
}
