//! A pillar of another make: it goes by its database, and looks at its bytes for checksums of other types only.

use std::process::Output;

use pillarbox_client::digests::{Hasher, plain_spec};
use pillarbox_messages::{
    ChecksumData, ChecksumDataItem, ChecksumType, GetChecksumsFinalResponse, HexBinary,
    IdentifyPillarsForGetChecksumsResponse, IdentifyPillarsForReplaceFileResponse, Message,
    ReplaceFileFinalResponse, ResponseCode, ResponseInfo, ResultingChecksums,
};

use super::{BETTER, GOOD, OTHER, ROTTEN, objects, stderr, stdout};
use crate::support::{md5, peers::StandIn, process::Running, site::Site};

/// A site with the pillar `other`.
struct Played {
    site: Site,
    _hub: Running,
    other: Other,
}

/// What the pillar answers.
struct Other {
    stand_in: StandIn,
    /// What its database was made from.
    known: Vec<u8>,
    /// What its file is; none: it tells checksums of the default type only.
    bytes: Option<Vec<u8>>,
}

impl Played {
    async fn start(known: &[u8], bytes: Option<&[u8]>) -> Self {
        let site = Site::new(&["other"]);
        let hub = site.start("hub");
        site.file("new", GOOD);
        let other = Other {
            stand_in: StandIn::join(&site, "other").await,
            known: known.to_vec(),
            bytes: bytes.map(<[u8]>::to_vec),
        };
        Self {
            site,
            _hub: hub,
            other,
        }
    }

    /// Runs the command, and answers as long as it asks.
    async fn replace(&mut self, meant: &[u8], more: &[&str]) -> Output {
        let meant = md5(meant);
        let mut args = vec!["-f", "new", "-i", "a.tif", "-p", "other", "-C", &meant];
        args.extend(more);
        args.push("--json");
        let command = self.site.prepare("replace-file", args);
        let mut ended =
            tokio::task::spawn_blocking(move || crate::support::process::finish(command));
        loop {
            tokio::select! {
                output = &mut ended => return output.unwrap(),
                () = self.other.answer() => {}
            }
        }
    }
}

impl Other {
    async fn answer(&mut self) {
        let asked = self.stand_in.identify_request().await;
        if self.identify(&asked).await {
            let request = self.stand_in.requests.message().await;
            self.perform(request).await;
        }
    }

    /// Tells whether it is ready.
    async fn identify(&self, asked: &Message) -> bool {
        let header = self.stand_in.peer.component.response_header(asked.header());
        let ready = ResponseInfo::new(ResponseCode::IdentificationPositive, "ready");
        let pillar_id = self.stand_in.peer.component.id().clone();
        let response = match asked {
            Message::IdentifyPillarsForGetChecksumsRequest(asked) => {
                let wanted = asked.checksum_request_for_existing_file.clone().unwrap();
                let no = ResponseInfo::new(ResponseCode::RequestNotSupported, "MD5 only");
                let able = self.bytes.is_some() || wanted.checksum_type == ChecksumType::Md5;
                Message::from(IdentifyPillarsForGetChecksumsResponse {
                    header,
                    response_info: if able { ready } else { no },
                    file_ids: asked.file_ids.clone(),
                    checksum_request_for_existing_file: Some(wanted),
                    pillar_id,
                    pillar_checksum_spec: None,
                    time_to_deliver: None,
                })
            }
            Message::IdentifyPillarsForReplaceFileRequest(asked) => {
                IdentifyPillarsForReplaceFileResponse {
                    header,
                    response_info: ready,
                    file_id: asked.file_id.clone(),
                    pillar_id,
                    pillar_checksum_spec: None,
                    time_to_deliver: None,
                }
                .into()
            }
            other => panic!("{other:?}"),
        };
        let info = response.response_info().unwrap();
        let is_ready = info.response_code == ResponseCode::IdentificationPositive;
        self.stand_in.peer.send(response).await;
        is_ready
    }

    async fn perform(&self, asked: Message) {
        let component = &self.stand_in.peer.component;
        let header = component.response_header(asked.header());
        let pillar_id = Some(component.id().clone());
        let done = ResponseInfo::new(ResponseCode::OperationCompleted, "done");
        let response = match asked {
            Message::GetChecksumsRequest(asked) => {
                let spec = asked.checksum_request_for_existing_file.unwrap();
                let item = ChecksumDataItem {
                    file_id: "a.tif".into(),
                    checksum_value: self.checksum(spec.checksum_type),
                    calculation_timestamp: component.timestamp(),
                };
                Message::from(GetChecksumsFinalResponse {
                    header,
                    response_info: done,
                    pillar_id,
                    checksum_request_for_existing_file: Some(spec),
                    resulting_checksums: Some(ResultingChecksums::Items(vec![item])),
                    partial_result: Some(false),
                })
            }
            Message::ReplaceFileRequest(asked) => {
                let known = ChecksumData {
                    checksum_spec: ChecksumType::Md5.into(),
                    checksum_value: self.checksum(ChecksumType::Md5),
                    calculation_timestamp: component.timestamp(),
                };
                let meant = asked.checksum_data_for_existing_file.unwrap();
                let meant = meant.checksum_value == known.checksum_value;
                let refused = ResponseInfo::new(ResponseCode::ExistingFileChecksumFailure, "no");
                ReplaceFileFinalResponse {
                    header,
                    response_info: if meant { done } else { refused },
                    pillar_id,
                    pillar_checksum_spec: None,
                    file_id: asked.file_id,
                    file_address: asked.file_address,
                    checksum_data_for_existing_file: meant.then_some(known),
                    checksum_data_for_new_file: asked.checksum_data_for_new_file.filter(|_| meant),
                }
                .into()
            }
            other => panic!("{other:?}"),
        };
        self.stand_in.peer.send(response).await;
    }

    fn checksum(&self, checksum_type: ChecksumType) -> HexBinary {
        match checksum_type {
            ChecksumType::Md5 => md5(&self.known).parse().unwrap(),
            ChecksumType::Sha256 => {
                let mut sum = Hasher::new(&plain_spec(ChecksumType::Sha256)).unwrap();
                sum.update(self.bytes.as_ref().unwrap());
                sum.finish()
            }
            other => panic!("{other}"),
        }
    }
}

/// The one line of JSON.
fn told(output: &Output, code: i32) -> serde_json::Value {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
    let mut told = objects(&stdout(output));
    assert_eq!(told.len(), 1, "{told:?}");
    told.remove(0)
}

/// It replaces the file by the same, or refuses: either way the client tells what is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn of_a_pillar_that_does_not_look_whether_it_has_the_new_file_the_client_finds_out() {
    for bytes in [Some(GOOD), None] {
        let mut played = Played::start(GOOD, bytes).await;
        for meant in [GOOD, OTHER] {
            let dry = played.replace(meant, &["--dry-run"]).await;
            assert_eq!(told(&dry, 0)["would"], "nothing");
            let done = played.replace(meant, &[]).await;
            assert_eq!(told(&done, 0)["already_there"], true);
            assert_eq!(stderr(&done), "other had the new a.tif already\n");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_pillar_that_does_not_look_at_its_bytes_repairs_and_refuses_by_its_database() {
    for known in [GOOD, BETTER] {
        let mut played = Played::start(known, Some(ROTTEN)).await;
        let dry = played.replace(known, &["--dry-run"]).await;
        assert_eq!(told(&dry, 0)["would"], "replace");
        for meant in [OTHER, ROTTEN] {
            for dry in [&["--dry-run"][..], &[]] {
                let refused = played.replace(meant, dry).await;
                let refused = told(&refused, 255);
                assert_eq!(refused["code"], "EXISTING_FILE_CHECKSUM_FAILURE");
            }
        }
    }
}
